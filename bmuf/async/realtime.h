/*
 * realtime.h - blocks of a strategy of unit BM_EVENT in real time: each rank is
 * a worker that learns and meets the server (server.h) when it is ready, and
 * knows nothing of the others until its block ends. What comes of it depends on
 * who was first, and no two runs are alike.
 */
#ifndef BM_BMUF_ASYNC_REALTIME_H
#define BM_BMUF_ASYNC_REALTIME_H

#include "bmuf/async/async_worker.h"

typedef struct bm_realtime bm_realtime;

/* Collective. Reads [sgd]. All is borrowed. A worker for each rank, or it is
 * BM_ERR_CONFIG; BM_ERR_UNSUPPORTED without MPI_THREAD_MULTIPLE. */
BM_CHECKED bm_status bm_realtime_open(bm_realtime **out,
                                      const bm_config *config, bm_comm *comm,
                                      bm_strategy *strategy,
                                      bm_local_state *local_state,
                                      bm_async_workers *async_workers);
void bm_realtime_close(bm_realtime *r);

/*
 * Collective. This rank's worker has a share of so many mini-batches. All ranks
 * come to the end of it, whoever fails, and have the server's model then.
 * *service: of which `stale` and n_stale are set before; the same on all ranks.
 */
BM_CHECKED bm_status bm_realtime_block(bm_realtime *r, int64_t steps,
                                       float rate, double *stale,
                                       bm_service *service);

#endif
