/* cuda_async_copy.h - what the backend implements of bm_async_copy
 * (backend.h). */
#ifndef BM_COMPUTE_CUDA_MEMORY_CUDA_ASYNC_COPY_H
#define BM_COMPUTE_CUDA_MEMORY_CUDA_ASYNC_COPY_H

#include "compute/cuda/device/cuda_context.h"

/* BM_ERR_MEMORY, BM_ERR_DEVICE: no memory, no stream. */
BM_CHECKED bm_status bm_cuda_async_copy_open(bm_backend *be, void **self);
void bm_cuda_async_copy_close(bm_backend *be, void *self);
void bm_cuda_async_copy_get(bm_backend *be, void *self, size_t piece,
                            float *dst, const float *src, size_t n);
/* BM_ERR_DEVICE: the copy failed. */
BM_CHECKED bm_status bm_cuda_async_copy_wait(bm_backend *be, void *self,
                                             size_t piece);
void bm_cuda_async_copy_put(bm_backend *be, void *self, float *dst,
                            const float *src, size_t n);
void bm_cuda_async_copy_join(bm_backend *be, void *self);

#endif
