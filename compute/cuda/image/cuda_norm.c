/*
 * cuda_norm.c - batch normalisation, with the activation and the pooling after
 * it in the same pass. A thread sums in floats, sums of threads are doubles.
 * The order depends only on the shape.
 */
#include "compute/cuda/device/cuda_operations.h"
#include "compute/cuda/image/image_kernels.h"
#include "compute/cuda/memory/cuda_forms.h"
#include "compute/cuda/memory/cuda_ring.h"

static size_t doubles(size_t C)
{
    return (1 + (size_t)BM_STRIPES) * 2 * C;
}

size_t bm_cuda_norm_kept(bm_backend *be, const bm_norm *n, bm_extent out)
{
    (void)be;
    (void)out;
    return 2 * doubles(n->channels) + BM_FACTORS * n->channels;
}

/* Everything but x, y and gradients. */
static bm_norm_pass pass(bm_backend *be, const bm_norm *n, bm_extent in,
                         bm_extent out, float *kept)
{
    size_t C = n->channels;
    bm_norm_pass p = {
        .panes = {.T = in.T,
                  .B = in.B,
                  .in = bm_cuda_frames(be, in),
                  .out = bm_cuda_frames(be, out),
                  .height = (unsigned)n->height,
                  .channels = (unsigned)C,
                  .out_frames = (unsigned)out.T,
                  .out_height = (unsigned)bm_windows(n->rows, n->height),
                  .time = (unsigned)n->time.size,
                  .rows = (unsigned)n->rows.size},
        .f = n->f,
        .gamma = bm_cuda_read(be, n->gamma, C),
        .beta = bm_cuda_read(be, n->beta, C),
        .mean = bm_cuda_read(be, n->mean, C),
        .var = bm_cuda_read(be, n->var, C)};

    for (size_t b = 0; b < in.B; b++)
        p.positions += (double)in.frames[b] * (double)n->height;
    p.moments = (double *)(void *)kept;
    p.partial = p.moments + 2 * C;
    p.factors = kept + 2 * doubles(C);
    return p;
}

static size_t numbers(bm_extent e, size_t rows, size_t channels)
{
    return e.T * e.B * rows * channels;
}

void bm_cuda_norm_forward(bm_backend *be, const bm_norm *n, bm_extent in,
                          bm_extent out, bool training, const float *x,
                          float *y, float *kept)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    bm_norm_pass p = pass(be, n, in, out, kept);
    size_t C = n->channels;

    (void)bm_cuda_write(be, kept, bm_cuda_norm_kept(be, n, out));
    p.x = bm_cuda_in(be, x, numbers(in, n->height, C));
    p.y = bm_cuda_out(be, y, numbers(out, p.panes.out_height, C));
    if (training)
        BM_CUDA(be, bm_kernel_norm_measure(stream, &p));
    else
        BM_CUDA(be, bm_kernel_norm_given(stream, &p));
    BM_CUDA(be, bm_kernel_norm_forward(stream, &p));
}

/* The position of each maximum is found again in x; y is not read. */
void bm_cuda_norm_backward(bm_backend *be, const bm_norm *n, bm_extent in,
                           bm_extent out, const float *x, const float *y,
                           const float *dy, float *kept, float *dx,
                           float *dgamma, float *dbeta, float *mean_off,
                           float *var_off)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    bm_norm_pass p = pass(be, n, in, out, kept);
    size_t C = n->channels, n_x = numbers(in, n->height, C);

    (void)y;
    p.x = bm_cuda_in(be, x, n_x);
    p.dy = bm_cuda_in(be, dy, numbers(out, p.panes.out_height, C));
    p.dgamma = bm_cuda_write(be, dgamma, C);
    p.dbeta = bm_cuda_write(be, dbeta, C);
    p.mean_off = bm_cuda_write(be, mean_off, C);
    p.var_off = bm_cuda_write(be, var_off, C);
    BM_CUDA(be, bm_kernel_norm_slopes(stream, &p));
    if (dx == NULL)
        return;
    p.dx = bm_cuda_out(be, dx, n_x);
    BM_CUDA(be, bm_kernel_norm_backward(stream, &p));
}
