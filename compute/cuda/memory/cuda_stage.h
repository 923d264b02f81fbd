/* cuda_stage.h - what the backend implements of bm_stage (backend.h). */
#ifndef BM_COMPUTE_CUDA_MEMORY_CUDA_STAGE_H
#define BM_COMPUTE_CUDA_MEMORY_CUDA_STAGE_H

#include "compute/cuda/device/cuda_context.h"

/* BM_ERR_MEMORY, BM_ERR_DEVICE: no memory, no stream. */
BM_CHECKED bm_status bm_cuda_stage_open(bm_backend *be, void **self);
void bm_cuda_stage_close(bm_backend *be, void *self);
BM_CHECKED bm_status bm_cuda_stage_send(bm_backend *be, void *self, bm_extent e,
                                        size_t D, const bm_stored *sequences,
                                        float **x);

#endif
