/* code.h - launchers of the kernels in code.cu: see compute/device_code.h. */
#ifndef BM_COMPUTE_CUDA_KERNELS_CODE_H
#define BM_COMPUTE_CUDA_KERNELS_CODE_H

#include "compute/device_code.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* *non_finite must be 0 before. */
cudaError_t bm_kernel_carry(cudaStream_t stream, const bm_pieces *p,
                            const float *residual, float *y, float *non_finite);
cudaError_t bm_kernel_encode(cudaStream_t stream, const bm_pieces *p,
                             const float *x, float *residual, float *code);
cudaError_t bm_kernel_decode(cudaStream_t stream, const bm_pieces *p,
                             const float *code, bool adds, float *y);

#ifdef __cplusplus
}
#endif
#endif
