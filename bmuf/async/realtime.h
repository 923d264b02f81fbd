/*
 * realtime.h - blocks of a BM_EVENT strategy in real time: one worker on each
 * rank, which exchanges with the parameter server (server.h) after each period
 * and never waits for all ranks before the end of its block. The result depends
 * on the order of messages and differs from run to run.
 */
#ifndef BM_BMUF_ASYNC_REALTIME_H
#define BM_BMUF_ASYNC_REALTIME_H

#include "bmuf/async/async_worker.h"

typedef struct bm_realtime bm_realtime;

/* Fails with BM_ERR_CONFIG unless there are as many workers as ranks. */
BM_CHECKED bm_status bm_realtime_check(int workers, int ranks);

/*
 * Collective. Reads [sgd]. The comm, the strategy, the local state and the
 * workers are borrowed. Fails as bm_realtime_check, and with BM_ERR_UNSUPPORTED without MPI_THREAD_MULTIPLE.
 */
BM_CHECKED bm_status bm_realtime_open(bm_realtime **out,
                                      const bm_config *config, bm_comm *comm,
                                      bm_strategy *strategy,
                                      bm_local_state *local_state,
                                      bm_async_workers *async_workers);
void bm_realtime_close(bm_realtime *r);

/*
 * Collective. Trains this rank's worker on `steps` mini-batches. params->w is
 * the server's model before and after, equal on all ranks. The counters go to
 * *service, the same on all ranks; service->n_stale is the size of `stale`. A
 * rank whose training fails still completes the block and then returns its
 * error.
 */
BM_CHECKED bm_status bm_realtime_block(bm_realtime *r, int64_t steps,
                                       float rate, double *stale,
                                       bm_service *service);

#endif
