/*
 * async_worker.h - the workers that a rank hosts for a strategy of unit
 * BM_EVENT: each has a model of its own, and what it pushes to the server next
 * (server_policy.h). params->w is the server's model W, but while one of them
 * learns.
 */
#ifndef BM_BMUF_ASYNC_ASYNC_WORKER_H
#define BM_BMUF_ASYNC_ASYNC_WORKER_H

#include "bmuf/local_state.h"
#include "bmuf/task.h"

/* Mini-batches of a share: [from, to). */
typedef struct bm_period {
    int64_t from, to;
} bm_period;

typedef struct bm_async_worker {
    float *w, *push;  /* [n] on the backend: its model, and what it pushes */
    double samples;   /* in that */
    double seen;      /* samples of the block so far */
    double bad_steps; /* of the block that changed nothing */
    double seconds;   /* of learning in the block */
    double steps;     /* mini-batches in these */
} bm_async_worker;

typedef struct bm_async_workers bm_async_workers;

/* Reads [sgd]. All is borrowed, and what the task points to. Workers first ..
 * last - 1. */
BM_CHECKED bm_status bm_async_workers_open(
    bm_async_workers **out, const bm_config *config, bm_strategy *strategy,
    bm_local_state *local_state, const bm_task *task, int first, int last);
void bm_async_workers_close(bm_async_workers *g);

bm_async_worker *bm_async_workers_of(const bm_async_workers *g, int worker);

/* A block begins: their models are W, unless they keep their own. */
void bm_async_workers_begin(bm_async_workers *g);

/* The worker's model becomes W. Queued. */
void bm_async_workers_fetch(bm_async_workers *g, int worker);

/*
 * It learns from a period, and has something to push then. `moves`: its model
 * lives on after that. W is in another place meanwhile: learn between
 * bm_async_workers_lend and bm_async_workers_return.
 */
BM_CHECKED bm_status bm_async_workers_learn(bm_async_workers *g, int worker,
                                            bm_period at, float rate,
                                            bool moves);
void bm_async_workers_lend(bm_async_workers *g);
void bm_async_workers_return(bm_async_workers *g);

/* push <- alpha (w - W). Queued; and the worker's part: w <- w - push. */
void bm_async_workers_stretch(bm_async_workers *g, int worker);
void bm_async_workers_yield(bm_async_workers *g, int worker);

/* The block has ended: counts steps that workers' own updates refused. */
BM_CHECKED bm_status bm_async_workers_end(bm_async_workers *g);

/* The models that are kept: at most one for each hosted here. */
size_t bm_async_workers_state(bm_async_workers *g, bm_state *out);

/* Adds what workers keep under this policy: see bm_footprint. */
void bm_async_workers_footprint(const bm_server_policy *server_policy,
                                bm_hosting on, bm_footprint *sum);

#endif
