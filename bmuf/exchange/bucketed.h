/*
 * bucketed.h - gradients that are exchanged while they are made: a bucket of
 * them sets off, on a lane, as soon as the last worker hosted here is done with
 * it, and the backward pass goes on with the layers below.
 *
 *     backward   | L      | L - 1  | ..     | 1      |       | update
 *     lane                | L               | L - 1    | 1   |
 *
 * In tree and exact mode the bits are those of an exchange of everything.
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

bool bm_bucketed_wanted(const bm_bucketed_settings *settings);

/* Whether it goes with [job]; if not, says why. */
BM_CHECKED bm_status bm_bucketed_check(const bm_bucketed_settings *settings,
                                       const bm_job *job);

typedef struct bm_bucketed bm_bucketed;

/*
 * Collective. From now on listens to params->ready. For `merged`, times a few
 * exchanges first, and the backward pass of the first steps. The comm and
 * params are borrowed. Fails with BM_ERR_UNSUPPORTED if MPI serves one thread
 * only.
 */
BM_CHECKED bm_status bm_bucketed_open(bm_bucketed **out, bm_comm *comm,
                                      bm_params *params, const bm_job *job,
                                      const bm_bucketed_settings *settings);
void bm_bucketed_close(bm_bucketed *o);

/* The cut at hand, bm_bucketed_count buckets in their order. */
size_t bm_bucketed_count(const bm_bucketed *o);
bm_bucket bm_bucketed_bucket(const bm_bucketed *o, size_t i);

/* Of `merged`: an exchange takes a + b bytes seconds, as was measured. */
void bm_bucketed_line(const bm_bucketed *o, double *a, double *b);

/* The next worker hosted here begins; *samples is set by when part 0 is ready.
 */
void bm_bucketed_begin(bm_bucketed *o, const double *samples);

/* Seconds that params->ready has taken since. */
double bm_bucketed_used(const bm_bucketed *o);

/* The worker has ended: what was not ready before is now, unless it has no
 * samples. */
BM_CHECKED bm_status bm_bucketed_end(bm_bucketed *o, int worker,
                                     double samples);

/* Collective, when all workers have ended. params->g <- the mean. *weight is
 * that of all workers; if it is 0, g is as it was. */
BM_CHECKED bm_status bm_bucketed_finish(bm_bucketed *o, double *weight);

#endif
