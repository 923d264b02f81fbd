/*
 * kernels.h - the seam between C and CUDA: launchers, in plain C types.
 * Each queues one kernel on `stream`, or a few, and returns the launch error.
 * Pointers are the device's.
 */
#ifndef BM_COMPUTE_CUDA_KERNELS_H
#define BM_COMPUTE_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The upper half of a float. */
typedef struct bm_bf16 {
    uint16_t bits;
} bm_bf16;

/* A vector, in one of its forms. */
typedef struct bm_source {
    const void *x;
    bool bf16;
} bm_source;
typedef struct bm_target {
    void *x;
    bool bf16;
} bm_target;

enum { BM_PARTIALS = 1024 }; /* parts of a reduction over the whole device */

/* loops.cu */

/* y = a x + b y, over n floats. A term with factor 0 is not read. */
cudaError_t bm_kernel_axpby(cudaStream_t stream, size_t n, float a,
                            const float *x, float b, float *y);

/* One form from the other. */
cudaError_t bm_kernel_round(cudaStream_t stream, size_t n, const float *x,
                            bm_bf16 *y);
cudaError_t bm_kernel_widen(cudaStream_t stream, size_t n, const bm_bf16 *x,
                            float *y);

#ifdef __cplusplus
}
#endif
#endif
