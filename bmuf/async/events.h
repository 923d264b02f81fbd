/*
 * events.h - workers and a parameter server, one event after the other: a block
 * of a strategy of unit BM_EVENT, on the terms of server_policy.h. Block ends
 * are those of all strategies: everybody meets there, so that there is one
 * model to save and to evaluate.
 *
 * On the virtual clock (virtual_clock.h) all ranks keep the server, do its
 * updates in the clock's order with the vectors of the workers that push, and
 * so have the same bits on any number of ranks. What workers learn between two
 * meetings is computed as late as can be, by all ranks at once.
 */
#ifndef BM_BMUF_ASYNC_EVENTS_H
#define BM_BMUF_ASYNC_EVENTS_H

#include "bmuf/async/async_worker.h"

typedef struct bm_events bm_events;

/* Collective. Reads [clock] and [sgd]. All is borrowed, and what the task
 * points to. Workers first .. last - 1 are hosted here. */
BM_CHECKED bm_status bm_events_open(bm_events **out, const bm_config *config,
                                    bm_comm *comm, bm_strategy *strategy,
                                    bm_local_state *local_state,
                                    const bm_task *task, int first, int last);
void bm_events_close(bm_events *e);

/* Collective. Trains on the task's block, which is at this position. A rank
 * that fails meets the others all the same, and returns its failure at the end.
 * This rank's seconds are added to *compute_s and *exchange_s. */
BM_CHECKED bm_status bm_events_block(bm_events *e, bm_position at, float rate,
                                     double *compute_s, double *exchange_s);

/* What a worker that is hosted here has done in it. */
const bm_async_worker *bm_events_worker(const bm_events *e, int worker);

/* Collective. What went to and fro, of all workers; borrowed until the next
 * block. e = NULL: NULL. */
BM_CHECKED bm_status bm_events_service(bm_events *e, const bm_service **out);

/* Models that workers keep: at most one for each hosted here. e may be NULL. */
size_t bm_events_state(bm_events *e, bm_state *out);

#endif
