/* attention.cu - the weights of attention, and encodings of distances. A warp
 * takes a row of weights. */
#include "compute/cuda/kernels/kernel.h"

__global__ static void positions(size_t T, size_t D, float *y)
{
    BM_EACH(k, (2 * T - 1) * D)
    {
        size_t i = k % D;
        double p = (double)(T - 1) - (double)(k / D);
        double angle = p * pow(10000.0, -(double)(i / 2 * 2) / (double)D);

        y[k] = (float)(i % 2 == 0 ? sin(angle) : cos(angle));
    }
}

cudaError_t bm_kernel_positions(cudaStream_t stream, size_t T, size_t D,
                                float *y)
{
    return BM_LAUNCH(stream, positions, bm_grid((2 * T - 1) * D), bm_block, 0,
                     T, D, y);
}

/* Row k of s: sequence b, head h, frame t, with n frames to attend to; its row
 * of r begins at r, and distance 0 is number `first` + t. */
struct row {
    size_t n, r, first;
};

BM_INLINE row row_of(const bm_attention_pass &p, size_t k)
{
    size_t t = k % p.T, h = k / p.T % p.heads, b = k / p.T / p.heads;
    size_t length = (size_t)p.lengths[b];

    return {t < length ? length : 0, ((h * p.T + t) * p.B + b) * (2 * p.T - 1),
            p.T - 1 - t};
}

BM_INLINE float warp_largest(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

/* The rows of a warp. */
#define EACH_ROW(k, p)                                                         \
    for (size_t k = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;      \
         k < (p).B * (p).heads * (p).T;                                        \
         k += (size_t)gridDim.x * blockDim.x / 32)

__global__ static void weights(bm_attention_pass p)
{
    size_t lane = threadIdx.x % 32;

    EACH_ROW(k, p)
    {
        row q = row_of(p, k);
        const float *r = p.r + q.r + q.first;
        float *s = p.s + k * p.T, top = -INFINITY, sum = 0;

        for (size_t u = lane; u < q.n; u += 32) {
            s[u] = p.scale * (s[u] + r[u]);
            top = fmaxf(top, s[u]);
        }
        top = warp_largest(top);
        for (size_t u = lane; u < q.n; u += 32) {
            s[u] = expf(s[u] - top);
            sum += s[u];
        }
        sum = bm_warp_sum(sum);
        for (size_t u = lane; u < p.T; u += 32)
            s[u] = u < q.n ? s[u] / sum : 0;
    }
}

static cudaError_t by_row(cudaStream_t stream,
                          void (*kernel)(bm_attention_pass),
                          const bm_attention_pass *p)
{
    size_t rows = p->B * p->heads * p->T;

    if (rows == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, kernel, bm_grid(32 * rows), bm_block, 0, *p);
}

cudaError_t bm_kernel_attention_weights(cudaStream_t stream,
                                        const bm_attention_pass *p)
{
    return by_row(stream, weights, p);
}

/* Of a softmax s: s (d - sum of s d). */
__global__ static void back(bm_attention_pass p)
{
    size_t lane = threadIdx.x % 32;

    EACH_ROW(k, p)
    {
        row q = row_of(p, k);
        const float *s = p.from + k * p.T;
        float *d = p.s + k * p.T, *dr = p.dr + q.r, mean = 0;

        for (size_t u = lane; u < q.n; u += 32)
            mean += s[u] * d[u];
        mean = bm_warp_sum(mean);
        for (size_t i = lane; i < 2 * p.T - 1; i += 32) {
            size_t u = i - q.first; /* of i < first above all frames */
            float g = u < q.n ? p.scale * (s[u] * (d[u] - mean)) : 0;

            dr[i] = g;
            if (u < p.T)
                d[u] = g;
        }
    }
}

cudaError_t bm_kernel_attention_back(cudaStream_t stream,
                                     const bm_attention_pass *p)
{
    return by_row(stream, back, p);
}
