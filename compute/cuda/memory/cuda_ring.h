/*
 * cuda_ring.h - small arrays that go from the host to the device with the
 * operation that reads them: lengths, labels.
 *
 * The functions return device memory that stays valid while `stream` works on
 * what is queued until then and by some hundred later calls. The host's array
 * may change as soon as they return. They return NULL after a failure, also if
 * an array exceeds 4 MiB (BM_ERR_UNSUPPORTED).
 */
#ifndef BM_COMPUTE_CUDA_MEMORY_CUDA_RING_H
#define BM_COMPUTE_CUDA_MEMORY_CUDA_RING_H

#include "compute/cuda/device/cuda_context.h"

/* BM_ERR_MEMORY or BM_ERR_DEVICE: no memory. */
BM_CHECKED bm_status bm_cuda_ring_open(bm_backend *be);
void bm_cuda_ring_close(bm_backend *be);

const void *bm_cuda_send(bm_backend *be, const void *host, size_t bytes);

/* The lengths of the sequences, [B]. */
static inline const int32_t *bm_cuda_frames(bm_backend *be, bm_extent e)
{
    return bm_cuda_send(be, e.frames, e.B * sizeof *e.frames);
}

/* The index of each sequence's first label, [B], from the label counts [B]. */
const int32_t *bm_cuda_begins(bm_backend *be, const int32_t *count, size_t B);

#endif
