/*
 * task.h - a model and its data as the trainer sees them, and what it reports
 * of a parameter server. learner.h makes a task of a network and a reader.
 */
#ifndef BM_BMUF_TRAINER_TASK_H
#define BM_BMUF_TRAINER_TASK_H

#include "compute/params.h"
#include "io/batch/plan.h"

/*
 * A step is what an update is made of: a mini-batch, or several (learner.h).
 * Everything is keyed by the worker's number. The trainer calls `gradient`,
 * `score` and `steps` for workers hosted on this rank only; none of the hooks
 * communicates. A failure of any of them ends the block on all ranks.
 */
typedef struct bm_task {
    void *self;

    /* Moves to a block. *steps <- steps in the longest of all workers' shares,
     * equal on all ranks; 0: the epoch has no such block. */
    bm_status (*block)(void *self, bm_position at, int64_t *steps);

    /*
     * params->g <- the mean gradient, at params->w, of step `step` of the
     * worker's share; *samples <- its number of samples. Past the end of the
     * share *samples is 0 and params->g unchanged. Queued: scores add up on the
     * device. May call params->ready (compute/params.h) once *samples is
     * written.
     */
    bm_status (*gradient)(void *self, bm_params *params, int worker,
                          int64_t step, double *samples);

    /* Reads what the worker scored since the last call, in how many
     * mini-batches, and resets both. */
    bm_status (*score)(void *self, int worker, bm_score *out, double *batches);

    /* Steps in the share of a worker hosted here. */
    int64_t (*steps)(void *self, int worker);

    /* Blocks and frames of an epoch. */
    bm_epoch_size (*epoch)(void *self, int64_t epoch);

    /* [job] audit, see audit.h; NULL: none. Whether the block is audited, the
     * same on all ranks: then the task has the shares of the workers of
     * bm_audited_workers, too. */
    bool (*audited)(void *self);

    /* Turns auditing on or off: while it is on, gradient and score repeat a
     * computation and do not update counters. Optional. */
    void (*audit)(void *self, bool on);
} bm_task;

/* BM_EVENT: the traffic between workers and server in a block, equal on all
 * ranks. */
typedef struct bm_service {
    double pushes, updates;
    double pushed, pulled; /* bytes, of all workers */
    double mean, most;     /* staleness of pushes, in all shards */
    const double *stale; /* [n_stale]: pushes of staleness 0, 1 and so on, each
                              counted in each shard; the last element: of that
                              and more */
    size_t n_stale;
    int shards;               /* of the server */
    const double *shard_mean; /* [shards]: mean staleness; NULL: as `mean` */
    double seconds; /* of the block on the virtual clock; NAN: real time */
    const double *step_s; /* [workers]: measured, of a step; or NAN */
    int workers;
} bm_service;

#endif
