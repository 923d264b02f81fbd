/*
 * consistency.cu - two views of each sequence are to agree: dy += factor (p - q),
 * with p and q the softmax of a view and of the other one. A warp takes a frame of
 * both.
 */
#include "compute/cuda/kernels/kernel.h"

#include <float.h>

BM_INLINE float warp_largest(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

/* The softmax of x [C] is exp(x - top) part. */
struct scale {
    float top, part;
};

BM_INLINE scale scale_of(const float *x, size_t C, size_t lane)
{
    float top = -FLT_MAX, sum = 0;

    for (size_t k = lane; k < C; k += 32)
        top = fmaxf(top, x[k]);
    top = warp_largest(top);
    for (size_t k = lane; k < C; k += 32)
        sum += expf(x[k] - top);
    return {top, 1 / bm_warp_sum(sum)};
}

BM_INLINE void add(bm_out y, size_t i, float x)
{
    bm_give(y, i, bm_number({y.x, y.half}, i) + x);
}

__global__ static void agree(bm_agreement a)
{
    size_t half = a.B / 2, lane = threadIdx.x % 32;

    for (size_t f = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
         f < a.T * half; f += (size_t)gridDim.x * blockDim.x / 32) {
        size_t t = f / half, b = f % half;
        size_t at = (t * a.B + b) * a.C, other = at + half * a.C;
        scale p, q;

        if (t >= (size_t)a.frames[b])
            continue;
        p = scale_of(a.y + at, a.C, lane);
        q = scale_of(a.y + other, a.C, lane);
        if (!isfinite(p.part) || !isfinite(q.part))
            continue;
        for (size_t k = lane; k < a.C; k += 32) {
            float off = a.factor * (expf(a.y[at + k] - p.top) * p.part -
                                    expf(a.y[other + k] - q.top) * q.part);

            add(a.dy, at + k, off);
            add(a.dy, other + k, -off);
        }
    }
}

cudaError_t bm_kernel_consistency(cudaStream_t stream, const bm_agreement *a)
{
    size_t n = 32 * a->T * (a->B / 2);

    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, agree, bm_grid(n), bm_block, 0, *a);
}
