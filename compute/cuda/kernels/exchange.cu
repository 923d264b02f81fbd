/*
 * exchange.cu - operations on vectors that workers exchange. Numbers are
 * rounded as in comm/sum/sum_loops.c and bmuf/filter_loops.c: no product is
 * fused with a sum, except products of two floats, which are exact in double,
 * and subnormal floats are zero.
 */
#include "compute/cuda/kernels/flush.h"
#include "compute/cuda/kernels/vec4.h"

BM_INLINE bool is_non_finite(float x)
{
    return (__float_as_int(x) & 0x7f800000) == 0x7f800000;
}

__global__ static void difference(size_t n, const float *x, const float *from,
                                  float *y, bool wide, float *non_finite)
{
    bool found = false;

    BM_EACH(j, bm_vec4_count(n))
    {
        bm_vec4 q = bm_load(x, 4 * j, n, wide);
        bm_vec4 less = {};

        if (from != NULL)
            less = bm_load(from, 4 * j, n, wide);
        for (int k = 0; k < 4; k++) {
            if (from != NULL)
                q.x[k] = bm_subtract(q.x[k], less.x[k]);
            found = found || is_non_finite(q.x[k]);
        }
        bm_store(y, 4 * j, n, wide, q);
    }
    if (found)
        *non_finite = 1; /* all threads write the same value */
}

cudaError_t bm_kernel_difference(cudaStream_t stream, size_t n, const float *x,
                                 const float *from, float *y, float *non_finite)
{
    bool wide = bm_is_wide(x) && bm_is_wide(from) && bm_is_wide(y);

    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, difference, bm_grid(bm_vec4_count(n)), bm_block, 0,
                     n, x, from, y, wide, non_finite);
}

__global__ static void blend(size_t n, double a, float *y, double b,
                             const float *x, bool wide)
{
    BM_EACH(j, bm_vec4_count(n))
    {
        bm_vec4 p = {}, q = bm_load(x, 4 * j, n, wide);

        if (a != 0)
            p = bm_load(y, 4 * j, n, wide);
        for (int k = 0; k < 4; k++)
            q.x[k] =
                bm_narrow(a == 0 ? __dmul_rn(b, bm_widen(q.x[k]))
                                 : __dadd_rn(__dmul_rn(a, bm_widen(p.x[k])),
                                             __dmul_rn(b, bm_widen(q.x[k]))));
        bm_store(y, 4 * j, n, wide, q);
    }
}

cudaError_t bm_kernel_blend(cudaStream_t stream, size_t n, double a, float *y,
                            double b, const float *x)
{
    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, blend, bm_grid(bm_vec4_count(n)), bm_block, 0, n,
                     a, y, b, x, bm_is_wide(x) && bm_is_wide(y));
}

/* Threads of a chunk: one for each of the partial sums of filter_loops.c. */
enum { LANES = 16 };

/* The sum over the threads of a chunk, in their order. */
BM_INLINE double in_order(double x)
{
    double sum = 0;

    for (unsigned k = 0; k < LANES; k++)
        sum = __dadd_rn(
            sum,
            __shfl_sync(~0u, x, (int)(threadIdx.x % 32 / LANES * LANES + k)));
    return sum;
}

__global__ static void filter(bm_filter_step f, size_t n, const float *g,
                              float *y, double *products)
{
    size_t chunk = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
    size_t from = chunk * BM_FILTER_CHUNK, to = min(from + BM_FILTER_CHUNK, n);
    double gg = 0, gd = 0, dd = 0;

#pragma unroll 4
    for (size_t i = from + threadIdx.x % LANES; i < to; i += LANES) {
        bool learned = i < f.n_learned;
        double eta = learned ? f.eta : 0, zeta = learned ? f.zeta : 1;
        float mean = bm_flush(g[i]), by = mean;

        if (f.model == NULL) {
            y[i] = bm_add(y[i], mean);
        } else {
            float next = 0;

            by = bm_narrow(__dadd_rn(__dmul_rn(eta, bm_widen(f.delta[i])),
                                     __dmul_rn(zeta, mean)));
            next = bm_add(f.model[i], by);
            f.delta[i] = by;
            f.model[i] = next;
            y[i] = bm_narrow(
                __dadd_rn(next, __dmul_rn(learned ? f.ahead : 0, by)));
        }
        if (learned) {
            gg = __fma_rn(mean, mean, gg);
            gd = __fma_rn(mean, by, gd);
            dd = __fma_rn(by, by, dd);
        }
    }
    gg = in_order(gg);
    gd = in_order(gd);
    dd = in_order(dd);
    if (from < n && threadIdx.x % LANES == 0) {
        products[3 * chunk] = gg;
        products[3 * chunk + 1] = gd;
        products[3 * chunk + 2] = dd;
    }
}

cudaError_t bm_kernel_filter(cudaStream_t stream, const bm_filter_step *f,
                             size_t n, const float *g, float *y,
                             double *products)
{
    const bm_filter_step one = *f;
    size_t chunks = (n + BM_FILTER_CHUNK - 1) / BM_FILTER_CHUNK;
    size_t blocks = (chunks * LANES + bm_block - 1) / bm_block;

    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, filter, (unsigned)blocks, bm_block, 0, one, n, g,
                     y, products);
}
