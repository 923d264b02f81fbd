/*
 * depthwise.cu - convolution over time of each feature alone. A thread has a
 * number of y or of dx. Sums over frames go over parts of them, whose number
 * depends only on the shape, and so do the bits.
 */
#include "compute/cuda/kernels/kernel.h"

/* Frames of a part, at least; parts, at most. */
static const size_t PART = 64, PARTS = 128;

__global__ static void forward(bm_depthwise_pass p)
{
    size_t D = p.width;

    BM_EACH(k, p.out_frames * p.B * D)
    {
        size_t t = k / D / p.B, b = k / D % p.B, d = k % D;
        size_t frames = (size_t)p.in[b], first = t * p.stride;
        float sum = p.b[d];

        for (size_t i = 0; i < p.size; i++)
            if (first + i >= p.before && first + i - p.before < frames)
                sum +=
                    p.w[i * D + d] *
                    bm_number(p.x, ((first + i - p.before) * p.B + b) * D + d);
        bm_give(p.y, k, t < (size_t)p.out[b] ? sum : 0);
    }
}

cudaError_t bm_kernel_depthwise_forward(cudaStream_t stream,
                                        const bm_depthwise_pass *p)
{
    size_t n = p->out_frames * p->B * p->width;

    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, forward, bm_grid(n), bm_block, 0, *p);
}

__global__ static void backward(bm_depthwise_pass p)
{
    size_t D = p.width;

    BM_EACH(k, p.frames * p.B * D)
    {
        size_t t = k / D / p.B, b = k / D % p.B, d = k % D;
        size_t at = t + p.before;
        float sum = 0;

        for (size_t i = 0; i < p.size && i <= at; i++) {
            size_t from = (at - i) / p.stride;

            if ((at - i) % p.stride == 0 && from < (size_t)p.out[b])
                sum +=
                    p.w[i * D + d] * bm_number(p.dy, (from * p.B + b) * D + d);
        }
        bm_give(p.dx, k, t < (size_t)p.in[b] ? sum : 0);
    }
}

cudaError_t bm_kernel_depthwise_backward(cudaStream_t stream,
                                         const bm_depthwise_pass *p)
{
    size_t n = p->frames * p->B * p->width;

    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, backward, bm_grid(n), bm_block, 0, *p);
}

/* ---- sums over frames ---------------------------------------------------- */

static unsigned parts_of(const bm_depthwise_pass *p)
{
    size_t parts = (p->out_frames * p->B + PART - 1) / PART;

    return (unsigned)(parts < PARTS ? parts : PARTS);
}

size_t bm_kernel_depthwise_work(const bm_depthwise_pass *p)
{
    return parts_of(p) * (p->size + 1) * p->width;
}

/* work [parts, size + 1, D]: a thread has a number of dw, or behind those of
 * db, a block a part of the frames of y. */
__global__ static void slopes(bm_depthwise_pass p)
{
    size_t D = p.width, all = p.out_frames * p.B;
    size_t part = blockIdx.y, parts = gridDim.y;
    size_t from = all * part / parts, to = all * (part + 1) / parts;
    size_t n = (p.size + 1) * D;
    size_t k = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    size_t i = k / D, d = k % D;
    float sum = 0;

    if (k >= n)
        return;
    for (size_t f = from; f < to; f++) {
        size_t t = f / p.B, b = f % p.B, at = t * p.stride + i;

        if (t >= (size_t)p.out[b])
            continue;
        if (i == p.size)
            sum += bm_number(p.dy, f * D + d);
        else if (at >= p.before && at - p.before < (size_t)p.in[b])
            sum += bm_number(p.dy, f * D + d) *
                   bm_number(p.x, ((at - p.before) * p.B + b) * D + d);
    }
    p.work[part * n + k] = sum;
}

__global__ static void finish_slopes(bm_depthwise_pass p, unsigned parts)
{
    size_t learned = p.size * p.width, n = learned + p.width;

    BM_EACH(k, n)
    {
        double sum = 0;

        for (unsigned part = 0; part < parts; part++)
            sum += p.work[part * n + k];
        if (k < learned)
            p.dw[k] = (float)sum;
        else
            p.db[k - learned] = (float)sum;
    }
}

cudaError_t bm_kernel_depthwise_slopes(cudaStream_t stream,
                                       const bm_depthwise_pass *p)
{
    unsigned parts = parts_of(p);
    size_t n = (p->size + 1) * p->width;
    unsigned blocks = (unsigned)((n + bm_block - 1) / bm_block);
    cudaError_t error = cudaSuccess;

    if (parts > 0)
        error = BM_LAUNCH(stream, slopes, dim3(blocks, parts), bm_block, 0, *p);
    if (error != cudaSuccess)
        return error;
    return BM_LAUNCH(stream, finish_slopes, bm_grid(n), bm_block, 0, *p, parts);
}
