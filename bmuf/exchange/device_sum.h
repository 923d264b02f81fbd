/*
 * device_sum.h - the ordered sum in the memory of devices, in mode tree or along
 * a grid (ring, halving, hier). Means, slices and the common vector belong to the
 * backend. Ranks send them through the device communicator, or through a
 * CUDA-aware MPI. The bits are those of comm/sum/sum.h.
 */
#ifndef BM_BMUF_EXCHANGE_DEVICE_SUM_H
#define BM_BMUF_EXCHANGE_DEVICE_SUM_H

#include "bmuf/job.h"
#include "comm/comm.h"
#include "compute/backend.h"

#include <stdbool.h>

typedef struct bm_device_sum bm_device_sum;

/* How ranks send; a single rank needs NONE, and may use DEVICE_COMM to try
 * it. */
typedef enum bm_transport {
    BM_TRANSPORT_NONE,
    BM_TRANSPORT_DEVICE_COMM,
    BM_TRANSPORT_MPI
} bm_transport;

/*
 * Collective. Sums of n floats over job->workers workers; sum, coordinator and
 * topology as in bm_sum_open. The comm and backend are borrowed. Fails on all
 * ranks together: with BM_ERR_CONFIG as bm_sum_open, or in another mode; with
 * BM_ERR_MEMORY; with BM_ERR_DEVICE if two ranks share a device; with
 * BM_ERR_UNSUPPORTED if MPI is not CUDA-aware; as bm_device_comm_load.
 */
BM_CHECKED bm_status bm_device_sum_open(bm_device_sum **out, bm_comm *comm,
                                        bm_backend *be, size_t n,
                                        const bm_job *job, bm_transport by);
void bm_device_sum_close(bm_device_sum *d); /* NULL: no-op */

/* Adds x - from of the next worker hosted here, or x with from = NULL; both [n]
 * on the backend. *square is |x - from|^2 of the first `measured` elements. If it
 * is not finite, the weight becomes 0 and *good false. Waits for the backend,
 * and fails as bm_sync. */
BM_CHECKED bm_status bm_device_sum_add(bm_device_sum *d, int worker,
                                       const float *x, const float *from,
                                       double weight, size_t measured,
                                       double *square, bool *good);

/* This rank's slice: elements [*offset, *offset + count); returns count. */
size_t bm_device_sum_slice(const bm_device_sum *d, size_t *offset);

/* Collective, after all workers were added. *mean: this rank's slice of the
 * mean on the backend, which may be changed until the next worker is added; not
 * set if *weight, the sum of all weights, is 0. Its arithmetic is queued. Fails
 * on all ranks if the device of any rank has failed. */
BM_CHECKED bm_status bm_device_sum_mean(bm_device_sum *d, float **mean,
                                        double *weight);

/* The common vector [n] on the backend, owned by d. */
float *bm_device_sum_common(const bm_device_sum *d);

/* Collective. Every rank's slice of x [n] on the backend is copied to all
 * ranks. Fails on all ranks if the device of any rank has failed. */
BM_CHECKED bm_status bm_device_sum_allgather(bm_device_sum *d, float *x);

#endif
