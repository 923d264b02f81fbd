/* cuda_copy.h - the operations put, get, copy_between, pin and unpin of
 * backend.h. */
#ifndef BM_COMPUTE_CUDA_MEMORY_CUDA_COPY_H
#define BM_COMPUTE_CUDA_MEMORY_CUDA_COPY_H

#include "compute/cuda/device/cuda_context.h"

/* BM_ERR_MEMORY or BM_ERR_DEVICE: no pinned memory. */
BM_CHECKED bm_status bm_cuda_slots_open(bm_backend *be);
void bm_cuda_slots_close(bm_backend *be);

void bm_cuda_put(bm_backend *be, float *dst, const float *src, size_t n);
void bm_cuda_get(bm_backend *be, float *dst, const float *src, size_t n);
void bm_cuda_copy_between(bm_backend *to, float *y, bm_backend *from,
                          const float *x, size_t n);
void bm_cuda_pin(bm_backend *be, void *x, size_t bytes);
void bm_cuda_unpin(bm_backend *be, void *x);

#endif
