/*
 * cuda_norm.c - batch normalisation. Sums are floats within a thread and
 * doubles from there on, in one order for a shape.
 */
#include "compute/cuda/cuda.h"
#include "compute/cuda/image_kernels.h"

static size_t doubles(size_t C)
{
    return (1 + (size_t)BM_STRIPES) * 2 * C;
}

size_t bm_cuda_norm_kept(bm_backend *be, const bm_norm *n)
{
    (void)be;
    return 2 * doubles(n->channels) + BM_FACTORS * n->channels;
}

/* Everything but x, y and gradients. */
static bm_norm_pass pass(bm_backend *be, const bm_norm *n, bm_extent e,
                         float *kept)
{
    size_t C = n->channels;
    const int32_t *frames = bm_cuda_frames(be, e);
    bm_norm_pass p = {.panes = {.T = e.T,
                                .B = e.B,
                                .in = frames,
                                .out = frames,
                                .height = (unsigned)n->positions,
                                .channels = (unsigned)C,
                                .out_frames = (unsigned)e.T,
                                .out_height = (unsigned)n->positions,
                                .time = 1,
                                .rows = 1},
                      .gamma = bm_cuda_read(be, n->gamma, C),
                      .beta = bm_cuda_read(be, n->beta, C),
                      .mean = bm_cuda_read(be, n->mean, C),
                      .var = bm_cuda_read(be, n->var, C)};

    for (size_t b = 0; b < e.B; b++)
        p.positions += (double)e.frames[b] * (double)n->positions;
    p.moments = (double *)(void *)kept;
    p.partial = p.moments + 2 * C;
    p.factors = kept + 2 * doubles(C);
    return p;
}

static size_t numbers(const bm_norm *n, bm_extent e)
{
    return e.T * e.B * n->positions * n->channels;
}

void bm_cuda_norm_forward(bm_backend *be, const bm_norm *n, bm_extent e,
                          bool training, const float *x, float *y, float *kept)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    bm_norm_pass p = pass(be, n, e, kept);

    p.x = bm_cuda_in(be, x, numbers(n, e));
    p.y = bm_cuda_out(be, y, numbers(n, e));
    if (training)
        BM_CUDA(be, bm_kernel_norm_measure(stream, &p));
    else
        BM_CUDA(be, bm_kernel_norm_given(stream, &p));
    BM_CUDA(be, bm_kernel_norm_forward(stream, &p));
}

void bm_cuda_norm_backward(bm_backend *be, const bm_norm *n, bm_extent e,
                           const float *x, const float *dy, float *kept,
                           float *dx, float *dgamma, float *dbeta,
                           float *mean_off, float *var_off)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    bm_norm_pass p = pass(be, n, e, kept);
    size_t C = n->channels;

    p.x = bm_cuda_in(be, x, numbers(n, e));
    p.dy = bm_cuda_in(be, dy, numbers(n, e));
    p.dgamma = bm_cuda_write(be, dgamma, C);
    p.dbeta = bm_cuda_write(be, dbeta, C);
    p.mean_off = bm_cuda_write(be, mean_off, C);
    p.var_off = bm_cuda_write(be, var_off, C);
    BM_CUDA(be, bm_kernel_norm_slopes(stream, &p));
    if (dx == NULL)
        return;
    p.dx = bm_cuda_out(be, dx, numbers(n, e));
    BM_CUDA(be, bm_kernel_norm_backward(stream, &p));
}
