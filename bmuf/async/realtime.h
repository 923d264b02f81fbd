/*
 * realtime.h - blocks of a BM_EVENT strategy in real time: one worker on each
 * rank, which exchanges with the parameter server after each period, with one
 * shard after the other (server_shards.h, server.h), and never waits for all
 * ranks before the end of its block. The result depends on the order of messages
 * and differs from run to run.
 */
#ifndef BM_BMUF_ASYNC_REALTIME_H
#define BM_BMUF_ASYNC_REALTIME_H

#include "bmuf/async/async_worker.h"

typedef struct bm_realtime bm_realtime;

/* Fails with BM_ERR_CONFIG unless there are as many workers as ranks, and no
 * more shards ([clock] shards) than that. */
BM_CHECKED bm_status bm_realtime_check(int workers, long shards, int ranks);

/*
 * Collective. Reads [sgd]. The comm, the strategy, the local state and the
 * workers are borrowed. Fails as bm_realtime_check, with BM_ERR_UNSUPPORTED
 * without MPI_THREAD_MULTIPLE, or with BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_realtime_open(bm_realtime **out,
                                      const bm_config *config, bm_comm *comm,
                                      bm_strategy *strategy,
                                      bm_local_state *local_state,
                                      bm_async_workers *async_workers,
                                      long shards);
void bm_realtime_close(bm_realtime *r);

/* Adds a message, and the server of the largest shard with [clock] shards =
 * `shards`: see bm_footprint. */
void bm_realtime_footprint(long shards, const bm_server_policy *policy,
                           const bm_sgd_settings *set, bm_hosting on,
                           bm_footprint *sum);

/*
 * Collective. Trains this rank's worker on `steps` steps. params->w is
 * the server's model before and after, equal on all ranks. The counters go to
 * *service, the same on all ranks; service->n_stale is the size of `stale`;
 * service->mean is the sum of staleness over pushes, the mean of all shards. A
 * rank whose training fails still completes the block and returns its error.
 */
BM_CHECKED bm_status bm_realtime_block(bm_realtime *r, int64_t steps,
                                       float rate, double *stale,
                                       bm_service *service);

#endif
