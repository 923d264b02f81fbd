/*
 * real.h - blocks of a strategy of unit BM_EVENT in real time: each rank is a
 * worker that learns and meets the server (server.h) when it is ready, and
 * knows nothing of the others until its block ends. What comes of it depends on
 * who was first, and no two runs are alike.
 */
#ifndef BM_BMUF_REAL_H
#define BM_BMUF_REAL_H

#include "bmuf/guests.h"

typedef struct bm_real bm_real;

/* Collective. Reads [sgd]. All is borrowed. A worker for each rank, or it is
 * BM_ERR_CONFIG; BM_ERR_UNSUPPORTED without MPI_THREAD_MULTIPLE. */
BM_CHECKED bm_status bm_real_open(bm_real **out, const bm_config *config,
                                  bm_comm *comm, bm_strategy *strategy,
                                  bm_momenta *momenta, bm_guests *guests);
void bm_real_close(bm_real *r);

/*
 * Collective. This rank's worker has a share of so many mini-batches. All ranks
 * come to the end of it, whoever fails, and have the server's model then.
 * *service: of which `stale` and n_stale are set before; the same on all ranks.
 */
BM_CHECKED bm_status bm_real_block(bm_real *r, int64_t steps, float rate,
                                   double *stale, bm_service *service);

#endif
