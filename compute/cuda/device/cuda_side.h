/*
 * cuda_side.h - a second stream for work that nobody waits for soon: gradients
 * of an LSTM's weights beside the recurrence of the layer below, edit
 * distances beside CTC.
 *
 *     bm_cuda_fork(be);
 *     ... queue work on bm_cuda_of(be)->side
 *     bm_cuda_join(be);
 *
 * `side` is a stream of its own only with BMUF_SIDE_STREAM=on. By default it is
 * `stream` itself, and the functions below are no-ops.
 */
#ifndef BM_COMPUTE_CUDA_DEVICE_CUDA_SIDE_H
#define BM_COMPUTE_CUDA_DEVICE_CUDA_SIDE_H

#include "compute/cuda/device/cuda_context.h"

/* Opens `side`. BM_ERR_CONFIG: an invalid BMUF_SIDE_STREAM. BM_ERR_MEMORY,
 * BM_ERR_DEVICE: no stream. */
BM_CHECKED bm_status bm_cuda_side_open(bm_backend *be);
void bm_cuda_side_close(bm_backend *be);

/* After a fork, work on `side` starts after all that is on `stream`; after a
 * join, work on `stream` starts after all that is on `side`. */
void bm_cuda_fork(bm_backend *be);
void bm_cuda_join(bm_backend *be);

/* Instead of a join, for each vector that `side` goes on reading or, if
 * `written`, writing: `stream` waits for `side` when an operation needs x. */
void bm_cuda_lend(bm_backend *be, const float *x, size_t n, bool written);

/* Joins if `side` writes in x, or reads it and the caller is to write. */
void bm_cuda_reclaim(bm_backend *be, const float *x, size_t n, bool to_write);

/* Waits on the host for both streams. */
cudaError_t bm_cuda_side_sync(bm_backend *be);

#endif
