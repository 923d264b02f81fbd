/* loops.cu - operations on each element, and copies. */
#include "compute/cuda/kernels/flush.h"
#include "compute/cuda/kernels/functions.h"
#include "compute/cuda/kernels/vec4.h"
#include "core/rng.h"

/* Exchanges scale slices with it, on the host or here, with the same bits. */
__global__ static void axpby(size_t n, float a, const float *x, float b,
                             float *y, bool wide)
{
    BM_EACH(j, bm_vec4_count(n))
    {
        bm_vec4 sum = {};

        if (a != 0) {
            bm_vec4 q = bm_load(x, 4 * j, n, wide);
            for (int k = 0; k < 4; k++)
                sum.x[k] = a == 1 ? q.x[k] : bm_times(a, q.x[k]);
        }
        if (b != 0) {
            bm_vec4 q = bm_load(y, 4 * j, n, wide);
            for (int k = 0; k < 4; k++)
                sum.x[k] = a == 0 ? __fmul_rn(b, q.x[k])
                                  : __fadd_rn(sum.x[k], __fmul_rn(b, q.x[k]));
        }
        bm_store(y, 4 * j, n, wide, sum);
    }
}

cudaError_t bm_kernel_axpby(cudaStream_t stream, size_t n, float a,
                            const float *x, float b, float *y)
{
    bool wide = bm_is_wide(x) && bm_is_wide(y);

    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, axpby, bm_grid(bm_vec4_count(n)), bm_block, 0, n,
                     a, x, b, y, wide);
}

template <typename X, typename Y>
__global__ static void convert(size_t n, const X *x, Y *y, bool wide)
{
    BM_EACH(j, bm_vec4_count(n))
    bm_store(y, 4 * j, n, wide, bm_load(x, 4 * j, n, wide));
}

template <typename X, typename Y>
static cudaError_t launch_convert(cudaStream_t stream, size_t n, const X *x,
                                  Y *y)
{
    bool wide = bm_is_wide(x) && bm_is_wide(y);

    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, (convert<X, Y>), bm_grid(bm_vec4_count(n)),
                     bm_block, 0, n, x, y, wide);
}

cudaError_t bm_kernel_round(cudaStream_t stream, size_t n, const float *x,
                            bm_bf16 *y)
{
    return launch_convert(stream, n, x, y);
}

cudaError_t bm_kernel_widen(cudaStream_t stream, size_t n, const bm_bf16 *x,
                            float *y)
{
    return launch_convert(stream, n, x, y);
}

__global__ static void add_rows(size_t n, size_t cols, float *y, const float *b,
                                bool wide)
{
    BM_EACH(j, bm_vec4_count(n))
    {
        bm_vec4 q = bm_load(y, 4 * j, n, wide);
        size_t col = 4 * j % cols;

        for (int k = 0; k < 4; k++) {
            q.x[k] += b[col];
            col = col + 1 < cols ? col + 1 : 0;
        }
        bm_store(y, 4 * j, n, wide, q);
    }
}

cudaError_t bm_kernel_add_rows(cudaStream_t stream, size_t rows, size_t cols,
                               float *y, const float *b)
{
    size_t n = rows * cols;

    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, add_rows, bm_grid(bm_vec4_count(n)), bm_block, 0,
                     n, cols, y, b, bm_is_wide(y));
}

/* ---- activations and dropout -------------------------------------------- */

struct activation {
    bm_activation f;

    __device__ float operator()(size_t, float x) const
    {
        switch (f) {
        case BM_IDENTITY:
            break;
        case BM_RELU:
            return x < 0 ? 0 : x;
        case BM_LEAKY_RELU:
            return x < 0 ? BM_LEAK * x : x;
        case BM_TANH:
            return tanhf(x);
        case BM_SIGMOID:
            return 1 / (1 + expf(-x));
        }
        return x;
    }
};

struct dropout {
    float p, scale;
    uint64_t key;

    __device__ float operator()(size_t i, float x) const
    {
        float u = (float)(int32_t)(bm_rng_at(key, i) >> 40) * 0x1p-24f;
        return u < p ? 0 : __fmul_rn(x, scale);
    }
};

/* y[i] = f(i, x[i]) */
template <typename F, typename X, typename Y>
__global__ static void map(F f, size_t n, const X *x, Y *y, bool wide)
{
    BM_EACH(j, bm_vec4_count(n))
    {
        bm_vec4 q = bm_load(x, 4 * j, n, wide);

        for (int k = 0; k < 4; k++)
            q.x[k] = f(4 * j + k, q.x[k]);
        bm_store(y, 4 * j, n, wide, q);
    }
}

template <typename F, typename X, typename Y>
static cudaError_t launch_map(cudaStream_t stream, F f, size_t n, const X *x,
                              Y *y)
{
    bool wide = bm_is_wide(x) && bm_is_wide(y);

    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, (map<F, X, Y>), bm_grid(bm_vec4_count(n)),
                     bm_block, 0, f, n, x, y, wide);
}

template <typename F>
static cudaError_t map_forms(cudaStream_t stream, F f, size_t n, bm_in x,
                             bm_out y)
{
    if (!y.half)
        return launch_map(stream, f, n, (const float *)x.x, (float *)y.x);
    if (!x.half)
        return launch_map(stream, f, n, (const float *)x.x, (bm_bf16 *)y.x);
    return launch_map(stream, f, n, (const bm_bf16 *)x.x, (bm_bf16 *)y.x);
}

cudaError_t bm_kernel_activate(cudaStream_t stream, bm_activation f, size_t n,
                               bm_in x, bm_out y)
{
    return map_forms(stream, activation{f}, n, x, y);
}

cudaError_t bm_kernel_dropout(cudaStream_t stream, size_t n, float p,
                              uint64_t key, bm_in x, bm_out y)
{
    return map_forms(stream, dropout{p, 1 / (1 - p), key}, n, x, y);
}

template <typename Y, typename DY, typename DX>
__global__ static void activate_back(bm_activation f, size_t n, const Y *y,
                                     const DY *dy, DX *dx, bool wide)
{
    BM_EACH(j, bm_vec4_count(n))
    {
        bm_vec4 q = bm_load(y, 4 * j, n, wide);
        bm_vec4 d = bm_load(dy, 4 * j, n, wide);

        for (int k = 0; k < 4; k++)
            d.x[k] = bm_pass_back(f, q.x[k], d.x[k]);
        bm_store(dx, 4 * j, n, wide, d);
    }
}

template <typename Y, typename DY, typename DX>
static cudaError_t launch_back(cudaStream_t stream, bm_activation f, size_t n,
                               const Y *y, const DY *dy, DX *dx)
{
    bool wide = bm_is_wide(y) && bm_is_wide(dy) && bm_is_wide(dx);

    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, (activate_back<Y, DY, DX>),
                     bm_grid(bm_vec4_count(n)), bm_block, 0, f, n, y, dy, dx,
                     wide);
}

template <typename Y>
static cudaError_t back_to_half(cudaStream_t stream, bm_activation f, size_t n,
                                const Y *y, bm_in dy, bm_bf16 *dx)
{
    return dy.half ? launch_back(stream, f, n, y, (const bm_bf16 *)dy.x, dx)
                   : launch_back(stream, f, n, y, (const float *)dy.x, dx);
}

cudaError_t bm_kernel_activate_back(cudaStream_t stream, bm_activation f,
                                    size_t n, bm_in y, bm_in dy, bm_out dx)
{
    if (!dx.half)
        return launch_back(stream, f, n, (const float *)y.x,
                           (const float *)dy.x, (float *)dx.x);
    if (y.half)
        return back_to_half(stream, f, n, (const bm_bf16 *)y.x, dy,
                            (bm_bf16 *)dx.x);
    return back_to_half(stream, f, n, (const float *)y.x, dy, (bm_bf16 *)dx.x);
}

/* ---- clearing and copying ------------------------------------------------ */

/* Clears rows of n units past the end of their sequence. A warp takes whole
 * rows, so that it reads one length for a row. */
template <typename T>
__global__ static void clear_padding(size_t rows, size_t B, size_t n,
                                     const int32_t *frames, T *x)
{
    size_t thread = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    for (size_t row = thread / 32; row < rows;
         row += (size_t)gridDim.x * blockDim.x / 32)
        if (row / B >= (size_t)frames[row % B])
            for (size_t i = thread % 32; i < n; i += 32)
                x[row * n + i] = T();
}

template <typename T>
static cudaError_t launch_clear(cudaStream_t stream, size_t T_, size_t B,
                                size_t n, const int32_t *frames, T *x)
{
    size_t rows = T_ * B;

    if (rows * n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, clear_padding<T>, bm_grid(32 * rows), bm_block, 0,
                     rows, B, n, frames, x);
}

cudaError_t bm_kernel_clear_padding(cudaStream_t stream, size_t T, size_t B,
                                    size_t D, const int32_t *frames, bm_out x)
{
    size_t size = x.half ? sizeof(bm_bf16) : sizeof(float);
    size_t whole = sizeof(uint4) / size;

    if ((uintptr_t)x.x % sizeof(uint4) == 0 && D % whole == 0)
        return launch_clear(stream, T, B, D / whole, frames, (uint4 *)x.x);
    if (x.half)
        return launch_clear(stream, T, B, D, frames, (uint16_t *)x.x);
    return launch_clear(stream, T, B, D, frames, (uint32_t *)x.x);
}

template <typename T>
__global__ static void copy_runs(size_t all, bm_runs r, const T *x, T *y)
{
    BM_EACH(i, all)
    {
        size_t k = i % r.n, run = i / r.n;
        size_t j = run % r.inner, o = run / r.inner;

        y[o * r.outer_y + j * r.inner_y + k] =
            x[o * r.outer_x + j * r.inner_x + k];
    }
}

template <typename T>
static cudaError_t launch_copy(cudaStream_t stream, bm_runs r, const T *x, T *y)
{
    size_t all = r.outer * r.inner * r.n;

    if (all == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, copy_runs<T>, bm_grid(all), bm_block, 0, all, r, x,
                     y);
}

/* Copies runs in units of `whole` numbers, if they consist of such. */
static bool in_units(const bm_runs *r, size_t whole, bm_runs *out)
{
    size_t bits = r->n | r->outer_x | r->inner_x | r->outer_y | r->inner_y;

    *out = {r->outer,           r->inner,           r->n / whole,
            r->outer_x / whole, r->inner_x / whole, r->outer_y / whole,
            r->inner_y / whole};
    return bits % whole == 0; /* a power of two */
}

cudaError_t bm_kernel_copy_runs(cudaStream_t stream, const bm_runs *r, bm_in x,
                                bm_out y)
{
    size_t size = x.half ? sizeof(bm_bf16) : sizeof(float);
    bm_runs units;

    if (((uintptr_t)x.x | (uintptr_t)y.x) % sizeof(uint4) == 0 &&
        in_units(r, sizeof(uint4) / size, &units))
        return launch_copy(stream, units, (const uint4 *)x.x, (uint4 *)y.x);
    if (x.half)
        return launch_copy(stream, *r, (const uint16_t *)x.x, (uint16_t *)y.x);
    return launch_copy(stream, *r, (const uint32_t *)x.x, (uint32_t *)y.x);
}
