/*
 * task.h - what the trainer knows of a model and its data, and what it reports
 * of a parameter server. learner.h makes a task of a network and a reader.
 */
#ifndef BM_BMUF_TASK_H
#define BM_BMUF_TASK_H

#include "compute/params.h"
#include "io/batch/plan.h"

/* What there is to learn. Everything is keyed by the worker's number. */
typedef struct bm_task {
    void *self;

    /*
     * Moves to a block. *steps is the number of mini-batches in the longest of
     * all workers' shares, equal on all ranks; 0 if the epoch has no such
     * block.
     */
    bm_status (*block)(void *self, bm_position at, int64_t *steps);

    /*
     * Leaves in params->g the mean gradient, at params->w, of mini-batch `step`
     * of the worker's share, and in *samples how many samples it has: 0, and
     * params->g as it was, past the end of the share. Waits for no device: what
     * it scores adds up where it is. Calls params->ready, if it is there, as
     * compute/params.h says, once *samples is written; or not at all.
     */
    bm_status (*gradient)(void *self, bm_params *params, int worker,
                          int64_t step, double *samples);

    /* Reads what the worker scored since the last call. */
    bm_status (*score)(void *self, int worker, bm_score *out);

    /* Mini-batches in the share of a worker hosted here. */
    int64_t (*steps)(void *self, int worker);
} bm_task;

/* BM_EVENT: what went between workers and server in a block, the same on all
 * ranks. */
typedef struct bm_service {
    double pushes, updates;
    double pushed, pulled; /* bytes, of all workers */
    double mean, most;     /* staleness of pushes */
    const double *stale;   /* [n_stale]: pushes of staleness 0, 1 and so on; the
                              last: of that and more */
    size_t n_stale;
    double
        seconds; /* the block took on the virtual clock; NAN: there is none */
    const double *step_s; /* [workers]: measured, of a mini-batch; or NAN */
    int workers;
} bm_service;

#endif
