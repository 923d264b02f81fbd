/*
 * cuda_room.h - memory of the device: rooms that grow, and idle vectors
 * (bm_alloc_idle), which make room for others. An idle vector is on the device
 * while there is room, else in pinned memory of the host, until an operation
 * takes it:
 *
 *     x = bm_cuda_idle_take(be, v, true)     where v is on the device now
 *
 * What one operation has taken stays where it is until the next operation. An
 * eighth of the device's memory is left to what libraries and the driver
 * allocate for themselves.
 */
#ifndef BM_COMPUTE_CUDA_DEVICE_CUDA_ROOM_H
#define BM_COMPUTE_CUDA_DEVICE_CUDA_ROOM_H

#include "compute/cuda/device/cuda_context.h"

/* cudaMalloc; where memory is short, idle vectors make room. */
cudaError_t bm_cuda_malloc(bm_backend *be, void **out, size_t bytes);

/* Makes the room at least so large, and returns it. NULL after a failure. */
void *bm_cuda_room_for(bm_backend *be, bm_cuda_room *r, size_t bytes);

/* Room for one operation: the next one that asks gets the same memory. NULL
 * after a failure. */
void *bm_cuda_scratch(bm_backend *be, size_t bytes);

typedef struct bm_cuda_idle bm_cuda_idle;

/* A vector of zeros. BM_ERR_MEMORY: no memory on the host. */
BM_CHECKED bm_status bm_cuda_idle_open(bm_backend *be, size_t bytes,
                                       bm_cuda_idle **out);
void bm_cuda_idle_close(bm_backend *be, bm_cuda_idle *v);

/* Its memory on the device. Without `load` it is undefined there: all of it
 * will be written. NULL after a failure. */
void *bm_cuda_idle_take(bm_backend *be, bm_cuda_idle *v, bool load);

#endif
