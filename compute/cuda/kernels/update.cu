/*
 * update.cu - a step of momentum SGD, of AdamW or of RMSProp over the flat vector:
 * partial sums of the gradient's norm, then one pass that moves 22 bytes for each
 * parameter (reads g, v and w, writes v, w and its bf16 twin), or 30 with m.
 */
#include "compute/adam.h"
#include "compute/cuda/kernels/vec4.h"

/*
 * The sum of squares of g [n], a partial sum for each block, in doubles, where
 * squares of floats are exact and do not overflow. Zero times each of the
 * statistics after g is added: if one is not finite, the sum is NaN.
 */
__global__ static void squares(size_t n, size_t all, const float *g, bool wide,
                               double *partial)
{
    __shared__ double room[32];
    double sum = 0;

    BM_EACH(j, bm_vec4_count(all))
    {
        bm_vec4 q = bm_load(g, 4 * j, all, wide);
        for (int k = 0; k < 4; k++) {
            double x = q.x[k];
            sum += (4 * j + k < n ? x : 0.0) * x;
        }
    }
    sum = bm_block_sum(sum, room);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum;
}

/* The sum of the partial sums, on all threads of the block. */
BM_INLINE double total(unsigned parts, const double *partial)
{
    __shared__ double room[32];
    double sum = 0;

    for (unsigned i = threadIdx.x; i < parts; i += blockDim.x)
        sum += partial[i];
    return bm_block_sum(sum, room);
}

/* Updates v and w of one number, rounded as on the other backends. */
BM_INLINE void step(const bm_momentum &m, float g, float *v, float *w)
{
    float by = __fmul_rn(m.rate, __fadd_rn(g, __fmul_rn(m.decay, *w)));

    *v = __fsub_rn(__fmul_rn(m.momentum, *v), by);
    *w = __fadd_rn(*w,
                   m.nesterov ? __fsub_rn(__fmul_rn(m.momentum, *v), by) : *v);
}

/* If g is not finite, w and v are kept, but w16 still becomes w. */
__global__ __launch_bounds__(256, 4) static void update(bm_momentum_update u,
                                                        bool wide,
                                                        unsigned parts,
                                                        const double *partial)
{
    size_t n = u.n, all = n + u.statistics;
    double norm = sqrt(total(parts, partial));
    bool good = isfinite(norm);
    float scale =
        u.of.clip > 0 && norm > u.of.clip ? (float)(u.of.clip / norm) : 1;

    if (!good && blockIdx.x == 0 && threadIdx.x == 0)
        *u.skipped += 1;
    if (!good && u.w16 == NULL)
        return;
    BM_EACH(j, bm_vec4_count(all))
    {
        bm_vec4 w = bm_load(u.w, 4 * j, all, wide);

        if (good) {
            bm_vec4 g = bm_load(u.g, 4 * j, all, wide);
            bm_vec4 v = bm_load(u.v, 4 * j, n, wide);

            for (int k = 0; k < 4; k++)
                if (4 * j + k < n)
                    step(u.of, __fmul_rn(g.x[k], scale), &v.x[k], &w.x[k]);
                else
                    w.x[k] -= g.x[k];
            bm_store(u.v, 4 * j, n, wide, v);
            bm_store(u.w, 4 * j, all, wide, w);
        }
        if (u.w16 != NULL)
            bm_store(u.w16, 4 * j, all, wide, w);
    }
}

/* One block for every 256 groups of four numbers, up to `most`. */
static unsigned blocks(size_t n, size_t most)
{
    size_t shares = (bm_vec4_count(n) + bm_block - 1) / bm_block;
    return (unsigned)(shares < most ? shares : most);
}

cudaError_t bm_kernel_update(cudaStream_t stream, const bm_momentum_update *u,
                             int multiprocessors, double *partial)
{
    const bm_momentum_update one = *u;
    size_t all = u->n + u->statistics;
    bool wide = bm_is_wide(u->g) && bm_is_wide(u->v) && bm_is_wide(u->w) &&
                bm_is_wide(u->w16);
    unsigned parts = blocks(all, BM_PARTIALS);
    cudaError_t error = cudaSuccess;

    if (all == 0)
        return cudaSuccess;
    error = BM_LAUNCH(stream, squares, parts, bm_block, 0, one.n, all, one.g,
                      bm_is_wide(one.g), partial);
    if (error != cudaSuccess)
        return error;
    return BM_LAUNCH(stream, update, /* as many as run at once */
                     blocks(all, 4 * (size_t)multiprocessors), bm_block, 0, one,
                     wide, parts, partial);
}

__global__ static void add_parts(unsigned parts, const double *partial,
                                 double *sum)
{
    double all = total(parts, partial);

    if (threadIdx.x == 0)
        *sum = all;
}

cudaError_t bm_kernel_squares(cudaStream_t stream, size_t n, const float *x,
                              double *sum, double *partial)
{
    unsigned parts = blocks(n, BM_PARTIALS);
    cudaError_t error = cudaSuccess;

    if (n > 0)
        error = BM_LAUNCH(stream, squares, parts, bm_block, 0, n, n, x,
                          bm_is_wide(x), partial);
    if (error != cudaSuccess)
        return error;
    return BM_LAUNCH(stream, add_parts, 1, bm_block, 0, parts, partial, sum);
}

/* ---- Muon --------------------------------------------------------------- */

__global__ static void unit(size_t n, const float *x, float *y, bool wide,
                            unsigned parts, const double *partial)
{
    double norm = sqrt(total(parts, partial));
    float by = norm > 0 && isfinite(norm) ? (float)(1 / norm) : 0;

    BM_EACH(j, bm_vec4_count(n))
    {
        bm_vec4 q = bm_load(x, 4 * j, n, wide);

        for (int k = 0; k < 4; k++)
            q.x[k] = by == 0 ? 0 : __fmul_rn(by, q.x[k]);
        bm_store(y, 4 * j, n, wide, q);
    }
}

cudaError_t bm_kernel_unit(cudaStream_t stream, size_t n, const float *x,
                           float *y, int multiprocessors, double *partial)
{
    bool wide = bm_is_wide(x) && bm_is_wide(y);
    unsigned parts = blocks(n, BM_PARTIALS);
    cudaError_t error = cudaSuccess;

    if (n == 0)
        return cudaSuccess;
    error = BM_LAUNCH(stream, squares, parts, bm_block, 0, n, n, x,
                      bm_is_wide(x), partial);
    if (error != cudaSuccess)
        return error;
    return BM_LAUNCH(stream, unit, blocks(n, 4 * (size_t)multiprocessors),
                     bm_block, 0, n, x, y, wide, parts, partial);
}

/* ---- AdamW, RMSProp ----------------------------------------------------- */

/* The decision that the norm gives, for all blocks of the pass. */
struct bm_adam_verdict {
    bm_adam_factors by;
    bool good;
};

BM_INLINE bm_adam_factors factors_of(const bm_adam &a, double scale, double t)
{
    bm_adam_factors f;

    f.scale = (float)scale;
    f.old1 = (float)a.beta1;
    f.new1 = (float)(1 - a.beta1);
    f.old2 = (float)a.beta2;
    f.new2 = (float)(1 - a.beta2);
    f.keep = (float)(1 - __dmul_rn(a.rate, a.decay));
    f.by = (float)(a.rate / (1 - pow(a.beta1, t)));
    f.root = (float)(1 / sqrt(1 - pow(a.beta2, t)));
    f.epsilon = (float)a.epsilon;
    f.rms = a.rms;
    f.decay = (float)a.decay;
    f.rate = (float)a.rate;
    return f;
}

/* One block. The verdict overwrites the partial sums, which have been read. */
__global__ static void judge(bm_adam_update u, unsigned parts, double *partial)
{
    double norm = sqrt(total(parts, partial)), scale = 1;
    bm_adam_verdict *out = (bm_adam_verdict *)(void *)partial;

    if (threadIdx.x != 0)
        return;
    if (u.of.clip > 0 && norm > u.of.clip)
        scale = u.of.clip / norm;
    out->good = scale * norm <= BM_ADAM_MOST;
    if (out->good) {
        *u.t += 1;
        out->by = factors_of(u.of, scale, *u.t);
    } else {
        *u.skipped += 1;
    }
}

BM_INLINE void adam_step(const bm_adam_factors &f, float g, float *m, float *v,
                         float *w)
{
    float x = __fmul_rn(f.scale, g);

    *m = __fadd_rn(__fmul_rn(f.old1, *m), __fmul_rn(f.new1, x));
    *v = __fadd_rn(__fmul_rn(f.old2, *v), __fmul_rn(__fmul_rn(f.new2, x), x));
    *w = __fsub_rn(
        __fmul_rn(f.keep, *w),
        __fdiv_rn(__fmul_rn(f.by, *m),
                  __fadd_rn(__fmul_rn(f.root, __fsqrt_rn(*v)), f.epsilon)));
}

BM_INLINE void rms_step(const bm_adam_factors &f, float g, float *m, float *v,
                        float *w)
{
    float x = __fadd_rn(__fmul_rn(f.scale, g), __fmul_rn(f.decay, *w));

    *v = __fadd_rn(__fmul_rn(f.old2, *v), __fmul_rn(__fmul_rn(f.new2, x), x));
    *m = __fadd_rn(__fmul_rn(f.old1, *m),
                   __fdiv_rn(x, __fadd_rn(__fsqrt_rn(*v), f.epsilon)));
    *w = __fsub_rn(*w, __fmul_rn(f.rate, *m));
}

__global__ __launch_bounds__(256, 4) static void adam(bm_adam_update u,
                                                      bool wide,
                                                      const double *partial)
{
    size_t n = u.n, all = n + u.statistics;
    bm_adam_verdict is = *(const bm_adam_verdict *)(const void *)partial;

    if (!is.good && u.w16 == NULL)
        return;
    BM_EACH(j, bm_vec4_count(all))
    {
        bm_vec4 w = bm_load(u.w, 4 * j, all, wide);

        if (is.good) {
            bm_vec4 g = bm_load(u.g, 4 * j, all, wide);
            bm_vec4 m = bm_load(u.m, 4 * j, n, wide);
            bm_vec4 v = bm_load(u.v, 4 * j, n, wide);

            for (int k = 0; k < 4; k++)
                if (4 * j + k < n && is.by.rms)
                    rms_step(is.by, g.x[k], &m.x[k], &v.x[k], &w.x[k]);
                else if (4 * j + k < n)
                    adam_step(is.by, g.x[k], &m.x[k], &v.x[k], &w.x[k]);
                else
                    w.x[k] -= g.x[k];
            bm_store(u.m, 4 * j, n, wide, m);
            bm_store(u.v, 4 * j, n, wide, v);
            bm_store(u.w, 4 * j, all, wide, w);
        }
        if (u.w16 != NULL)
            bm_store(u.w16, 4 * j, all, wide, w);
    }
}

cudaError_t bm_kernel_adam(cudaStream_t stream, const bm_adam_update *u,
                           int multiprocessors, double *partial)
{
    const bm_adam_update one = *u;
    size_t all = u->n + u->statistics;
    bool wide = bm_is_wide(u->g) && bm_is_wide(u->m) && bm_is_wide(u->v) &&
                bm_is_wide(u->w) && bm_is_wide(u->w16);
    unsigned parts = blocks(all, BM_PARTIALS);
    cudaError_t error = cudaSuccess;

    if (all == 0)
        return cudaSuccess;
    error = BM_LAUNCH(stream, squares, parts, bm_block, 0, one.n, all, one.g,
                      bm_is_wide(one.g), partial);
    if (error == cudaSuccess)
        error = BM_LAUNCH(stream, judge, 1, bm_block, 0, one, parts, partial);
    if (error != cudaSuccess)
        return error;
    return BM_LAUNCH(stream, adam, blocks(all, 4 * (size_t)multiprocessors),
                     bm_block, 0, one, wide, partial);
}
