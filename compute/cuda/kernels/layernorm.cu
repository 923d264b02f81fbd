/*
 * layernorm.cu - layer normalisation. A warp takes a frame. Sums over frames go
 * over parts of them, whose number depends only on the shape, and so do the
 * bits.
 */
#include "compute/cuda/kernels/kernel.h"

/* Frames of a part, at least; parts, at most. */
static const size_t PART = 64, PARTS = 128;

BM_INLINE bool is_inside(const bm_layernorm_pass &p, size_t frame)
{
    return frame / p.B < (size_t)p.lengths[frame % p.B];
}

/* The frames of a warp. */
#define EACH_FRAME(i, n)                                                       \
    for (size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;      \
         i < (n); i += (size_t)gridDim.x * blockDim.x / 32)

static cudaError_t by_frame(cudaStream_t stream,
                            void (*kernel)(bm_layernorm_pass),
                            const bm_layernorm_pass *p)
{
    if (p->frames == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, kernel, bm_grid(32 * p->frames), bm_block, 0, *p);
}

__global__ static void forward(bm_layernorm_pass p)
{
    size_t D = p.width, lane = threadIdx.x % 32;

    EACH_FRAME(i, p.frames)
    {
        float sum = 0, mean = 0, scale = 0;

        if (!is_inside(p, i)) {
            for (size_t k = lane; k < D; k += 32)
                bm_give(p.y, i * D + k, 0);
            continue;
        }
        for (size_t k = lane; k < D; k += 32)
            sum += bm_number(p.x, i * D + k);
        mean = bm_warp_sum(sum) / (float)D;
        sum = 0;
        for (size_t k = lane; k < D; k += 32) {
            float off = bm_number(p.x, i * D + k) - mean;
            sum += off * off;
        }
        scale = rsqrtf(bm_warp_sum(sum) / (float)D + (float)BM_NORM_EPSILON);
        for (size_t k = lane; k < D; k += 32)
            bm_give(p.y, i * D + k,
                    p.gamma[k] * ((bm_number(p.x, i * D + k) - mean) * scale) +
                        p.beta[k]);
        if (lane == 0) {
            p.moments[2 * i] = mean;
            p.moments[2 * i + 1] = scale;
        }
    }
}

cudaError_t bm_kernel_layernorm_forward(cudaStream_t stream,
                                        const bm_layernorm_pass *p)
{
    return by_frame(stream, forward, p);
}

__global__ static void backward(bm_layernorm_pass p)
{
    size_t D = p.width, lane = threadIdx.x % 32;

    EACH_FRAME(i, p.frames)
    {
        float mean = 0, scale = 0, plain = 0, along = 0;

        if (!is_inside(p, i)) {
            for (size_t k = lane; k < D; k += 32)
                bm_give(p.dx, i * D + k, 0);
            continue;
        }
        mean = p.moments[2 * i];
        scale = p.moments[2 * i + 1];
        for (size_t k = lane; k < D; k += 32) {
            float g = p.gamma[k] * bm_number(p.dy, i * D + k);
            plain += g;
            along += g * ((bm_number(p.x, i * D + k) - mean) * scale);
        }
        plain = bm_warp_sum(plain) / (float)D;
        along = bm_warp_sum(along) / (float)D;
        for (size_t k = lane; k < D; k += 32) {
            float z = (bm_number(p.x, i * D + k) - mean) * scale;
            bm_give(p.dx, i * D + k,
                    scale * (p.gamma[k] * bm_number(p.dy, i * D + k) - plain -
                             z * along));
        }
    }
}

cudaError_t bm_kernel_layernorm_backward(cudaStream_t stream,
                                         const bm_layernorm_pass *p)
{
    return by_frame(stream, backward, p);
}

/* ---- sums over frames ---------------------------------------------------- */

static unsigned parts_of(const bm_layernorm_pass *p)
{
    size_t parts = (p->frames + PART - 1) / PART;

    return (unsigned)(parts < PARTS ? parts : PARTS);
}

size_t bm_kernel_layernorm_work(const bm_layernorm_pass *p)
{
    return 2 * parts_of(p) * p->width;
}

/* work [parts, 2, D]: a thread has a column, a block a part of the frames. */
__global__ static void slopes(bm_layernorm_pass p)
{
    size_t D = p.width, k = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    size_t part = blockIdx.y, parts = gridDim.y;
    size_t from = p.frames * part / parts, to = p.frames * (part + 1) / parts;
    float dgamma = 0, dbeta = 0;

    if (k >= D)
        return;
    for (size_t i = from; i < to; i++)
        if (is_inside(p, i)) {
            float dy = bm_number(p.dy, i * D + k);
            float off = bm_number(p.x, i * D + k) - p.moments[2 * i];

            dgamma += dy * (off * p.moments[2 * i + 1]);
            dbeta += dy;
        }
    p.work[2 * part * D + k] = dgamma;
    p.work[(2 * part + 1) * D + k] = dbeta;
}

__global__ static void finish_slopes(bm_layernorm_pass p, unsigned parts)
{
    BM_EACH(k, 2 * p.width)
    {
        double sum = 0;

        for (unsigned part = 0; part < parts; part++)
            sum += p.work[2 * part * p.width + k];
        if (k < p.width)
            p.dgamma[k] = (float)sum;
        else
            p.dbeta[k - p.width] = (float)sum;
    }
}

cudaError_t bm_kernel_layernorm_slopes(cudaStream_t stream,
                                       const bm_layernorm_pass *p)
{
    unsigned parts = parts_of(p);
    unsigned blocks = (unsigned)((p->width + bm_block - 1) / bm_block);
    cudaError_t error = cudaSuccess;

    if (parts > 0)
        error = BM_LAUNCH(stream, slopes, dim3(blocks, parts), bm_block, 0, *p);
    if (error != cudaSuccess)
        return error;
    return BM_LAUNCH(stream, finish_slopes, bm_grid(2 * p->width), bm_block, 0,
                     *p, parts);
}
