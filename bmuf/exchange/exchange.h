/*
 * exchange.h - the ordered sum over workers for vectors on a backend, and the
 * update that is made of it:
 *
 *     for each worker k hosted here, in increasing order
 *         bm_exchange_fetch(e, w);
 *         the worker learns
 *         bm_exchange_add(e, k, w, bm_exchange_common(e), samples, &good);
 *     bm_exchange_update(e, &rule, &weight);       collective
 *
 * There are three implementations (exchange_ops.h): by way of the host
 * (comm/sum/sum.h), the same with codes (comm/sum/coded_sum.h), and from device
 * to device (device_sum.h). Slices and the common vector are where the sum is.
 * Without codes the bits are the same.
 *
 * Collective functions fail with BM_ERR_COMM or as bm_sync, on devices on all
 * ranks if any device has failed. Slices are bm_exchange_slice(e).count floats.
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

/* Fails as bm_exchange_open would on this backend, as far as a process can tell
 * without the others: there is no device, or no NCCL; job->sum is not one of
 * devices. */
BM_CHECKED bm_status bm_exchange_check(const bm_job *job, bm_backend *be);

/*
 * Collective. Opens an exchange of vectors of params->n floats, as
 * job->exchange says. code.ops != NULL: vectors of updates travel as this code,
 * in this mode, by way of the host. The comm and params are borrowed.
 *
 * Fails with BM_ERR_MEMORY, or as bm_sum_open or bm_coded_sum_open; unless
 * job->exchange is "auto" or "host", also as bm_device_sum_open, and with
 * BM_ERR_CONFIG if the job cannot exchange between devices. All ranks fail
 * together.
 */
BM_CHECKED bm_status bm_exchange_open(bm_exchange **out, bm_comm *comm,
                                      const bm_params *params,
                                      const bm_job *job, bm_code code,
                                      bm_coded_mode mode);
void bm_exchange_close(bm_exchange *e); /* NULL: no-op */

/* How vectors travel: "host", "nccl", "mpi", or "device" (nowhere: one rank has
 * all of them). */
const char *bm_exchange_transport(const bm_exchange *e);

/* ---- slices -------------------------------------------------------------- */

/* The backend that slices and the common vector belong to; NULL: the host. */
bm_backend *bm_exchange_backend(const bm_exchange *e);

/* This rank's slice of the vector; only offset and count are valid. */
bm_slice bm_exchange_slice(const bm_exchange *e);

/* Zeroed memory for the elements of this rank's slice. Free with
 * bm_exchange_free. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_exchange_alloc(bm_exchange *e, float **out);
void bm_exchange_free(bm_exchange *e, float *slice); /* e may be NULL */

/* slice = this rank's slice of x [n] on the backend. Fails as bm_sync. */
BM_CHECKED bm_status bm_exchange_cut(bm_exchange *e, const float *x,
                                     float *slice);

/* Multiplies a slice by a factor. */
void bm_exchange_scale(bm_exchange *e, float factor, float *slice);

/* Collective. x [n] on the backend = the slices of all ranks. */
BM_CHECKED bm_status bm_exchange_gather(bm_exchange *e, const float *slice,
                                        float *x);

/* ---- sum and update ------------------------------------------------------ */

/*
 * Adds x - from, or x with from = NULL, as the vector of the next worker hosted
 * here; both [n] on the backend, `from` the common vector. If an element is not
 * finite, the weight becomes 0 and *good false. Waits for the backend, and
 * fails as bm_sync; the worker is added with weight 0 then.
 */
BM_CHECKED bm_status bm_exchange_add(bm_exchange *e, int worker, const float *x,
                                     const float *from, double weight,
                                     bool *good);

/* Collective, after all workers were added with from = NULL. x [n] on the
 * backend = their weighted mean; zeros if no worker has weight. */
BM_CHECKED bm_status bm_exchange_mean(bm_exchange *e, float *x);

/* How an update changes the common vector, given the mean G. */
typedef struct bm_rule {
    enum {
        BM_TAKE,   /* common = G */
        BM_MOVE,   /* common += G */
        BM_FILTER, /* common = start, see filter.h */
    } kind;
    const bm_filter *filter; /* for weights; statistics become their mean */
    float *model, *delta;    /* this rank's slices, see bm_exchange_alloc. In
                                BM_MOVE: model += G instead and common = model,
                                if model is not NULL */
} bm_rule;

/* Collective, after all workers were added. *weight is the sum of all weights;
 * if it is 0, nothing is changed. Host and coded exchanges do not use the
 * backend here: the calling thread may be another one. */
BM_CHECKED bm_status bm_exchange_update(bm_exchange *e, const bm_rule *rule,
                                        double *weight);

/* Of the weights, without statistics, in the last update: G G, G Delta and
 * Delta Delta, with Delta = G unless the rule is BM_FILTER; and the mean of
 * x x over the workers' changes x. */
typedef struct bm_products {
    double aa, ab, bb;
    double workers;
} bm_products;

/* Collective. Sums by chunks, so that the bits do not depend on the number of
 * ranks. */
BM_CHECKED bm_status bm_exchange_products(bm_exchange *e, bm_products *out);

/* ---- the common vector --------------------------------------------------- */

/* The vector that all ranks have in common, n floats, owned by e. A rank may
 * write its slice until it calls bm_exchange_allgather, which is collective and
 * copies every slice to all ranks. */
float *bm_exchange_common(const bm_exchange *e);
BM_CHECKED bm_status bm_exchange_allgather(bm_exchange *e);

/*
 * This rank's slice of it = the filter's start, from rule->model and
 * rule->delta. previous: the filter until now; NULL: these were read from a
 * checkpoint. With a code the common vector lacks what was not sent yet: it
 * moves as far as the start does, and after a checkpoint it is a state.
 */
BM_CHECKED bm_status bm_exchange_start(bm_exchange *e, const bm_rule *rule,
                                       const bm_filter *previous);

/* Collective. The common vector = x [n] on the backend, equal on all ranks. */
BM_CHECKED bm_status bm_exchange_begin(bm_exchange *e, const float *x);

/* x [n] on the backend = the common vector. Queued. */
void bm_exchange_fetch(bm_exchange *e, float *x);

/* ---- states -------------------------------------------------------------- */

/* What a checkpoint must hold of the exchange: bm_exchange_state fills `out`
 * and returns how many states, at most bm_exchange_states. 0 without a code, or
 * with e = NULL. */
size_t bm_exchange_states(const bm_exchange *e);
size_t bm_exchange_state(const bm_exchange *e, bm_state *out);

#endif
