/*
 * exchange.h - the ordered sum over workers, for vectors on a backend, and what
 * is made of it: by way of the host (comm/sum/sum.h), or from device to device
 * (device_sum.h). Slices and the common vector are where the sum is, and the
 * bits are the same.
 */
#ifndef BM_BMUF_EXCHANGE_EXCHANGE_H
#define BM_BMUF_EXCHANGE_EXCHANGE_H

#include "bmuf/filter.h"
#include "bmuf/job.h"
#include "comm/sum/coded_sum.h"
#include "comm/sum/sum.h"
#include "compute/params.h"

#include <stdbool.h>

typedef struct bm_exchange bm_exchange;

/* Collective. For vectors of params->n floats. All arguments are borrowed. */
BM_CHECKED bm_status bm_exchange_open(bm_exchange **out, bm_comm *comm,
                                      const bm_params *params,
                                      const bm_job *job);
void bm_exchange_close(bm_exchange *e);

/*
 * Of an exchange by the host, which takes over the sum. From here on what is
 * added for an update goes through it: x - from, or x where gradients do. What
 * is added for a mean does not.
 */
void bm_exchange_code(bm_exchange *e, bm_coded_sum *coded);
bm_coded_sum *bm_exchange_coded(const bm_exchange *e); /* NULL: there is none */

/*
 * Of an exchange by the host: from here on updates happen on a thread of their
 * own, beside what others do with the backend, which they leave alone. What was
 * added has come before they begin.
 */
void bm_exchange_apart(bm_exchange *e);

/* How vectors go: "host", "nccl", "mpi", or "device": nowhere, one rank has
 * all.
 */
const char *bm_exchange_way(const bm_exchange *e);

/* The backend that slices and the common vector belong to; NULL: the host. */
bm_backend *bm_exchange_memory(const bm_exchange *e);

/* This rank's slice, and memory for one like it, zeroed, to be freed. */
bm_slice bm_exchange_slice(const bm_exchange *e);
BM_CHECKED bm_status bm_exchange_alloc(bm_exchange *e, float **out);
void bm_exchange_free(bm_exchange *e, float *part);

/* part = this rank's slice of x, which is on the backend. */
BM_CHECKED bm_status bm_exchange_cut(bm_exchange *e, const float *x,
                                     float *part);

/* The first n numbers of such a part times a factor. */
void bm_exchange_scale(bm_exchange *e, size_t n, float factor, float *part);

/* Collective. x on the backend = all ranks' slices. */
BM_CHECKED bm_status bm_exchange_gather(bm_exchange *e, const float *part,
                                        float *x);

/* Adds x - from; from = NULL: x. x is on the backend, from the common vector.
 * What holds a number that is none gets weight 0, and *good is false. */
BM_CHECKED bm_status bm_exchange_add(bm_exchange *e, int worker, const float *x,
                                     const float *from, double weight,
                                     bool *good);

/* Collective, after all workers were added. x on the backend = their mean. */
BM_CHECKED bm_status bm_exchange_mean(bm_exchange *e, float *x);

/* What becomes of the common vector when the mean G is there. */
typedef struct bm_rule {
    enum {
        BM_TAKE,   /* G */
        BM_MOVE,   /* common + G */
        BM_FILTER, /* start, as filter.h says */
    } kind;
    const bm_filter *filter; /* of what is learned; statistics get the mean */
    float *model, *delta;    /* this rank's slices, see bm_exchange_alloc; model
                                of BM_MOVE: moved instead, if it is not NULL */
} bm_rule;

/* Collective, after all workers were added. *weight is that of all of them; if
 * it is 0, nothing is changed. */
BM_CHECKED bm_status bm_exchange_update(bm_exchange *e, const bm_rule *rule,
                                        double *weight);

/* What all ranks have in common, n floats. Each rank may write its slice until
 * it calls bm_exchange_share, which is collective. */
float *bm_exchange_common(const bm_exchange *e);
BM_CHECKED bm_status bm_exchange_share(bm_exchange *e);

/* This rank's slice of it as the filter's start, from model and delta; what is
 * coded is not that, but a state. */
BM_CHECKED bm_status bm_exchange_start(bm_exchange *e, const bm_rule *rule);

/* Collective. Makes x, which is the same on all ranks, the common vector. */
BM_CHECKED bm_status bm_exchange_begin(bm_exchange *e, const float *x);

/* x on the backend = the common vector. Queued. */
void bm_exchange_fetch(bm_exchange *e, float *x);

/* Of what is learned, in the last update: G G, G Delta and Delta Delta, with G
 * for Delta where nothing is filtered. */
typedef struct bm_products {
    double aa, ab, bb;
} bm_products;

/* Collective. Added up by chunks, so that the bits do not depend on the number
 * of ranks. */
BM_CHECKED bm_status bm_exchange_products(bm_exchange *e, bm_products *out);

/* Only tests have reason to change it: by the host, how many floats are on
 * their way at a time, see bm_sum_limit. */
void bm_exchange_limit(bm_exchange *e, size_t n);

#endif
