/*
 * async_worker.h - the workers that a rank hosts for a BM_EVENT strategy. Each
 * has a model w of its own and a vector that it pushes to the server
 * (server_policy.h). params->w holds the server's model W, except while a
 * worker trains.
 */
#ifndef BM_BMUF_ASYNC_ASYNC_WORKER_H
#define BM_BMUF_ASYNC_ASYNC_WORKER_H

#include "bmuf/local_state.h"
#include "bmuf/trainer/task.h"

/* Steps [from, to) of a share, between two pushes. */
typedef struct bm_period {
    int64_t from, to;
} bm_period;

typedef struct bm_async_worker {
    float *w, *push;  /* [n] on the backend: its model; the next push */
    double samples;   /* in the next push */
    double seen;      /* samples, in the block so far */
    double bad_steps; /* skipped in the block: not finite */
    double seconds;   /* of training in the block */
    double steps;     /* in these seconds */
} bm_async_worker;

typedef struct bm_async_workers bm_async_workers;

/*
 * Opens workers [first, last) and reads [sgd]. The strategy, the local state
 * and the task's `self` are borrowed and must outlive the workers. Fails with
 * BM_ERR_CONFIG, BM_ERR_MEMORY or the backend's error.
 */
BM_CHECKED bm_status bm_async_workers_open(
    bm_async_workers **out, const bm_config *config, bm_strategy *strategy,
    bm_local_state *local_state, const bm_task *task, int first, int last);
void bm_async_workers_close(bm_async_workers *g);

/* A worker in [first, last); owned by g. */
bm_async_worker *bm_async_workers_of(const bm_async_workers *g, int worker);

/* At the start of a block: clears the counters; except with BM_ELASTIC, all
 * models become W. Queued. */
void bm_async_workers_begin(bm_async_workers *g);

/* The worker's model becomes W. Queued. */
void bm_async_workers_fetch(bm_async_workers *g, int worker);

/*
 * Trains on a period and fills `push`. keeps_model: the worker will use its
 * model again before the next fetch. Overwrites params->w: call between
 * bm_async_workers_save and bm_async_workers_restore where W is still needed.
 * Fails with the error of the task or the backend.
 */
BM_CHECKED bm_status bm_async_workers_train(bm_async_workers *g, int worker,
                                            bm_period at, float rate,
                                            bool keeps_model);

/* Saves W from params->w, and restores it. Queued. */
void bm_async_workers_save(bm_async_workers *g);
void bm_async_workers_restore(bm_async_workers *g);

/* BM_ELASTIC: push <- alpha (w - W), and w <- w - push. A push that is not finite
 * is not good: the worker begins anew, with w <- W and no state of its update.
 * Queued; params->w is W. */
void bm_async_workers_elastic_push(bm_async_workers *g, int worker);
void bm_async_workers_elastic_move(bm_async_workers *g, int worker, bool good);

/* At the end of a block: counts the steps that the workers' own updates
 * skipped. Fails with the backend's error. */
BM_CHECKED bm_status bm_async_workers_end(bm_async_workers *g);

/* BM_ELASTIC: lists the models of all hosted workers in `out`, which has room
 * for one each; returns how many. Otherwise 0. */
size_t bm_async_workers_state(bm_async_workers *g, bm_state *out);

/* Adds what workers keep under this policy: see bm_footprint. */
void bm_async_workers_footprint(const bm_server_policy *server_policy,
                                bm_hosting on, bm_footprint *sum);

#endif
