/*
 * bucketed.h - gradients exchanged in buckets during the backward pass: a
 * bucket is exchanged on the comm thread as soon as the last worker hosted here
 * has computed it, while the backward pass goes on with the layers below.
 *
 *     backward      | L      | L - 1  | ..     | 1      |       | update
 *     comm thread            | L               | L - 1    | 1   |
 *
 * In tree and exact mode the bits are those of one exchange of the whole
 * gradient.
 */
#ifndef BM_BMUF_EXCHANGE_BUCKETED_H
#define BM_BMUF_EXCHANGE_BUCKETED_H

#include "bmuf/exchange/buckets.h"
#include "bmuf/exchange/exchange.h"

/* [ssgd] */
typedef struct bm_bucketed_settings {
    const char *overlap; /* none, layer, bucket or merged */
    double bucket;       /* MiB */
} bm_bucketed_settings;

/* False if overlap is "none". */
bool bm_bucketed_wanted(const bm_bucketed_settings *settings);

/* Fails with BM_ERR_CONFIG if the settings conflict with those of [job]. */
BM_CHECKED bm_status bm_bucketed_check(const bm_bucketed_settings *settings,
                                       const bm_job *job);

typedef struct bm_bucketed bm_bucketed;

/*
 * Collective. Sets params->ready. With overlap = merged it first times a few
 * exchanges, and later the backward pass of the first steps. The comm and
 * params are borrowed. Fails as bm_bucketed_check; with BM_ERR_UNSUPPORTED if
 * MPI supports one thread only; with BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_bucketed_open(bm_bucketed **out, bm_comm *comm,
                                      bm_params *params, const bm_job *job,
                                      const bm_bucketed_settings *settings);
void bm_bucketed_close(bm_bucketed *o); /* waits; NULL: no-op */

/* The next worker hosted here starts its gradient. *samples, borrowed until
 * bm_bucketed_end, must be set when range 0 is ready. */
void bm_bucketed_begin(bm_bucketed *o, const double *samples);

/* Seconds spent in params->ready since then; on a device, less those in which
 * bm_bucketed_end waited for it. */
double bm_bucketed_used(const bm_bucketed *o);

/* The worker's gradient is complete: adds the buckets that were not ready
 * before, with weight `samples`. Fails as bm_sync; buckets have weight 0
 * then. */
BM_CHECKED bm_status bm_bucketed_end(bm_bucketed *o, int worker,
                                     double samples);

/* Collective, after all workers. params->g = the mean. *weight is the sum of
 * all weights; if it is 0, g is not changed. Fails with the first failure of an
 * exchange. */
BM_CHECKED bm_status bm_bucketed_finish(bm_bucketed *o, double *weight);

#endif
