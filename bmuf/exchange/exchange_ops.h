/* exchange_ops.h - what an implementation of the exchange provides. Only
 * bmuf/exchange includes this. */
#ifndef BM_BMUF_EXCHANGE_EXCHANGE_OPS_H
#define BM_BMUF_EXCHANGE_EXCHANGE_OPS_H

#include "bmuf/exchange/exchange.h"

/* Memory of slices: the host's or the backend's. See the functions of the same
 * names in exchange.h. */
typedef struct bm_slice_memory {
    bool on_backend;
    bm_status (*alloc)(bm_exchange *e, float **out);
    void (*free)(bm_exchange *e, float *slice);
    void (*cut)(bm_exchange *e, const float *x, float *slice); /* queued */
    void (*scale)(bm_exchange *e, float factor, float *slice);
} bm_slice_memory;

extern const bm_slice_memory bm_slices_on_host, bm_slices_on_backend;

/* Functions without a comment implement those of the same names in
 * exchange.h. */
typedef struct bm_exchange_ops {
    const bm_slice_memory *memory; /* of slices and of the common vector */
    /* Collective. Sets self, transport, slice and common. */
    bm_status (*open)(bm_exchange *e, const bm_job *job);
    void (*close)(bm_exchange *e); /* self may be NULL or half open */
    bm_status (*add)(bm_exchange *e, int worker, const float *x,
                     const float *from, double weight, bool *good);
    bm_status (*mean)(bm_exchange *e, float *x);
    /* By e->rule; fills this rank's rows of e->products. */
    bm_status (*update)(bm_exchange *e, double *weight);
    bm_status (*allgather)(bm_exchange *e);
    bm_status (*gather)(bm_exchange *e, const float *slice, float *x);
    void (*fetch)(bm_exchange *e, float *x);
    bm_status (*start)(bm_exchange *e, const bm_rule *rule,
                       const bm_filter *previous);
    /* NULL: no states. */
    size_t (*states)(const bm_exchange *e);
    size_t (*state)(const bm_exchange *e, bm_state *out);
} bm_exchange_ops;

struct bm_exchange {
    const bm_exchange_ops *ops;
    bm_backend *be;          /* borrowed */
    bm_comm *comm;           /* borrowed */
    const bm_params *params; /* borrowed */
    size_t n;
    bm_code code;       /* ops = NULL: none */
    bm_coded_mode mode; /* of code */

    const char *transport;
    bm_slice slice; /* offset and count */
    float *common;  /* [n] */
    void *self;     /* the implementation's */

    double *products; /* [chunks of n, 3]: see bm_exchange_products */
    double *squares;  /* [workers], after products: weight |x - from|^2 of the
                        workers that were added here, 0 for the others, and
                        without `from` */
    size_t workers;
    double weight;       /* of the last update */
    const bm_rule *rule; /* of the current update */
};

/* Sets squares[worker] of a change [n] on the host. */
void bm_exchange_note(bm_exchange *e, int worker, double weight,
                      const float *change);

/* The number of chunks of n elements. */
size_t bm_exchange_chunks(size_t n);

/* A bm_sum_work: applies the rule of the exchange `self` to a piece on the
 * host. */
void bm_exchange_apply(void *self, const bm_sum_piece *p);

/* y = start model of n elements of a slice on the host, `learned` of them not
 * statistics. */
void bm_exchange_start_of(const bm_rule *r, size_t n, size_t learned,
                          const float *model, const float *delta, float *y);

/* BM_ERR_CONFIG unless the backend is a device and the sum is its. */
BM_CHECKED bm_status bm_exchange_check_device(const bm_job *job,
                                              const bm_backend *be);

extern const bm_exchange_ops bm_exchange_host, bm_exchange_coded,
    bm_exchange_device;

#endif
