/* loops.cu - element by element. */
#include "compute/cuda/kernel.h"

__global__ static void axpby(size_t n, float a, const float *x, float b,
                             float *y)
{
    BM_EACH(i, n)
    {
        float ax = a == 0 ? 0 : __fmul_rn(a, x[i]);
        y[i] = b == 0 ? ax : __fadd_rn(ax, __fmul_rn(b, y[i]));
    }
}

cudaError_t bm_kernel_axpby(cudaStream_t stream, size_t n, float a,
                            const float *x, float b, float *y)
{
    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, axpby, bm_grid(n), bm_block, 0, n, a, x, b, y);
}

__global__ static void round_off(size_t n, const float *x, bm_bf16 *y)
{
    BM_EACH(i, n)
    y[i] = bm_to_bf16(x[i]);
}

cudaError_t bm_kernel_round(cudaStream_t stream, size_t n, const float *x,
                            bm_bf16 *y)
{
    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, round_off, bm_grid(n), bm_block, 0, n, x, y);
}

__global__ static void widen(size_t n, const bm_bf16 *x, float *y)
{
    BM_EACH(i, n)
    y[i] = bm_of_bf16(x[i]);
}

cudaError_t bm_kernel_widen(cudaStream_t stream, size_t n, const bm_bf16 *x,
                            float *y)
{
    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, widen, bm_grid(n), bm_block, 0, n, x, y);
}
