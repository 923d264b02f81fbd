/* gate.cu - swish and gated linear units, a number times a sigmoid, and gelu, a
 * number times the distribution function of normal numbers. */
#include "compute/cuda/kernels/kernel.h"

BM_INLINE float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

__global__ static void swish(size_t n, bm_in x, bm_out y)
{
    BM_EACH(i, n)
    {
        float a = bm_number(x, i);
        bm_give(y, i, a * sigmoid(a));
    }
}

cudaError_t bm_kernel_swish(cudaStream_t stream, size_t n, bm_in x, bm_out y)
{
    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, swish, bm_grid(n), bm_block, 0, n, x, y);
}

/* f' = s + x s (1 - s), s = sigmoid(x). */
__global__ static void swish_back(size_t n, bm_in x, bm_in dy, bm_out dx)
{
    BM_EACH(i, n)
    {
        float a = bm_number(x, i), s = sigmoid(a);
        bm_give(dx, i, bm_number(dy, i) * (s + a * (s * (1 - s))));
    }
}

cudaError_t bm_kernel_swish_back(cudaStream_t stream, size_t n, bm_in x,
                                 bm_in dy, bm_out dx)
{
    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, swish_back, bm_grid(n), bm_block, 0, n, x, dy, dx);
}

__global__ static void gelu(size_t n, bm_in x, bm_out y)
{
    BM_EACH(i, n)
    {
        float a = bm_number(x, i);
        bm_give(y, i, a * (0.5f * erfcf(-BM_SQRT_HALF * a)));
    }
}

cudaError_t bm_kernel_gelu(cudaStream_t stream, size_t n, bm_in x, bm_out y)
{
    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, gelu, bm_grid(n), bm_block, 0, n, x, y);
}

/* f' = P(x) + x p(x), with the density p of normal numbers. */
__global__ static void gelu_back(size_t n, bm_in x, bm_in dy, bm_out dx)
{
    BM_EACH(i, n)
    {
        float a = bm_number(x, i),
              density = BM_NORMAL_PEAK * expf(-0.5f * a * a);
        bm_give(dx, i,
                bm_number(dy, i) *
                    (0.5f * erfcf(-BM_SQRT_HALF * a) + a * density));
    }
}

cudaError_t bm_kernel_gelu_back(cudaStream_t stream, size_t n, bm_in x,
                                bm_in dy, bm_out dx)
{
    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, gelu_back, bm_grid(n), bm_block, 0, n, x, dy, dx);
}

__global__ static void glu(size_t all, size_t n, bm_in x, bm_out y)
{
    BM_EACH(i, all)
    {
        size_t at = i / n * 2 * n + i % n;
        bm_give(y, i, bm_number(x, at) * sigmoid(bm_number(x, at + n)));
    }
}

cudaError_t bm_kernel_glu(cudaStream_t stream, size_t rows, size_t n, bm_in x,
                          bm_out y)
{
    if (rows * n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, glu, bm_grid(rows * n), bm_block, 0, rows * n, n,
                     x, y);
}

__global__ static void glu_back(size_t all, size_t n, bm_in x, bm_in dy,
                                bm_out dx)
{
    BM_EACH(i, all)
    {
        size_t at = i / n * 2 * n + i % n;
        float s = sigmoid(bm_number(x, at + n)), d = bm_number(dy, i);

        bm_give(dx, at, d * s);
        bm_give(dx, at + n, d * bm_number(x, at) * (s * (1 - s)));
    }
}

cudaError_t bm_kernel_glu_back(cudaStream_t stream, size_t rows, size_t n,
                               bm_in x, bm_in dy, bm_out dx)
{
    if (rows * n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, glu_back, bm_grid(rows * n), bm_block, 0, rows * n,
                     n, x, dy, dx);
}
