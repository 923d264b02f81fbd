/*
 * events.h - a block of a BM_EVENT strategy: workers exchange with a parameter
 * server one after the other (server_policy.h). All ranks synchronise at the
 * end of a block, as with all strategies, so that there is one model to save
 * and to evaluate.
 *
 * On the virtual clock (virtual_clock.h) every rank keeps a copy of the server
 * and makes its updates in the order of the clock, so that the bits do not
 * depend on the number of ranks. Training is deferred until a push needs it, so
 * that all ranks train at the same time. In real time see realtime.h.
 */
#ifndef BM_BMUF_ASYNC_EVENTS_H
#define BM_BMUF_ASYNC_EVENTS_H

#include "bmuf/async/async_worker.h"

typedef struct bm_events bm_events;

/*
 * Collective. Opens workers [first, last) of this rank; reads [clock] and
 * [sgd]. The comm, the strategy, the local state and the task's `self` are
 * borrowed. Fails with BM_ERR_CONFIG, BM_ERR_UNSUPPORTED (see realtime.h) or
 * BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_events_open(bm_events **out, const bm_config *config,
                                    bm_comm *comm, bm_strategy *strategy,
                                    bm_local_state *local_state,
                                    const bm_task *task, int first, int last);
void bm_events_close(bm_events *e);

/*
 * Collective. Trains on the task's current block, at position `at`. Adds this
 * rank's seconds to *compute_s and *exchange_s. A rank whose training fails
 * still takes part in all exchanges and then returns its error.
 */
BM_CHECKED bm_status bm_events_block(bm_events *e, bm_position at, float rate,
                                     double *compute_s, double *exchange_s);

/* Counters of a worker hosted here in the last block; owned by e. */
const bm_async_worker *bm_events_worker(const bm_events *e, int worker);

/* Collective. Counters of the last block, the same on all ranks; borrowed until
 * the next block. e may be NULL: *out is NULL. Fails with BM_ERR_COMM. */
BM_CHECKED bm_status bm_events_service(bm_events *e, const bm_service **out);

/* As bm_async_workers_state; e may be NULL: 0. */
size_t bm_events_state(bm_events *e, bm_state *out);

#endif
