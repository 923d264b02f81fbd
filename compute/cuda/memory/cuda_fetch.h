/* cuda_fetch.h - what the backend implements of bm_fetch (fetch.h). */
#ifndef BM_COMPUTE_CUDA_MEMORY_CUDA_FETCH_H
#define BM_COMPUTE_CUDA_MEMORY_CUDA_FETCH_H

#include "compute/cuda/device/cuda_context.h"

/* BM_ERR_MEMORY, BM_ERR_DEVICE: no memory, no stream. */
BM_CHECKED bm_status bm_cuda_fetch_open(bm_backend *be, size_t n, size_t copies,
                                        void **self);
void bm_cuda_fetch_close(bm_backend *be, void *self);
void bm_cuda_fetch_start(bm_backend *be, void *self, size_t copy,
                         const float *x, size_t at, size_t n);
const float *bm_cuda_fetch_wait(bm_backend *be, void *self, size_t copy);

#endif
