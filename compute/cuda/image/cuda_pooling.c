/* cuda_pooling.c - the maximum or mean of windows. Maxima of windows that do not
 * overlap have kernels of their own. */
#include "compute/cuda/device/cuda_operations.h"
#include "compute/cuda/image/image_kernels.h"
#include "compute/cuda/memory/cuda_forms.h"
#include "compute/cuda/memory/cuda_ring.h"

static bm_panes panes(bm_backend *be, const bm_pooling *p, bm_extent in,
                      bm_extent out)
{
    return (bm_panes){.T = in.T,
                      .B = in.B,
                      .in = bm_cuda_frames(be, in),
                      .out = bm_cuda_frames(be, out),
                      .height = (unsigned)p->height,
                      .channels = (unsigned)p->channels,
                      .out_frames = (unsigned)out.T,
                      .out_height = (unsigned)bm_windows(p->rows, p->height),
                      .time = (unsigned)p->time.size,
                      .rows = (unsigned)p->rows.size};
}

static size_t numbers(bm_extent e, size_t rows, size_t channels)
{
    return e.T * e.B * rows * channels;
}

static bm_axis_windows axis(bm_window w)
{
    return (bm_axis_windows){(unsigned)w.size, (unsigned)w.stride,
                             (unsigned)w.before, 1, 1};
}

static bm_sliding sliding(const bm_pooling *p, const bm_panes *all)
{
    return (bm_sliding){.T = all->T,
                        .B = all->B,
                        .in = all->in,
                        .out = all->out,
                        .height = all->height,
                        .channels = all->channels,
                        .out_frames = all->out_frames,
                        .out_height = all->out_height,
                        .time = axis(p->time),
                        .rows = axis(p->rows),
                        .mean = p->mean};
}

void bm_cuda_pooling_forward(bm_backend *be, const bm_pooling *p, bm_extent in,
                             bm_extent out, const float *x, float *y)
{
    bm_panes all = panes(be, p, in, out);
    bm_sliding s = sliding(p, &all);
    bm_in from = bm_cuda_in(be, x, numbers(in, p->height, p->channels));
    bm_out to = bm_cuda_out(be, y, numbers(out, all.out_height, p->channels));
    cudaStream_t stream = bm_cuda_of(be)->stream;

    BM_CUDA(be, bm_pooling_is_plain(p)
                    ? bm_kernel_pooling_forward(stream, &all, from, to)
                    : bm_kernel_sliding_forward(stream, &s, from, to));
}

/* The position of each maximum is found again in x; y is not read. */
void bm_cuda_pooling_backward(bm_backend *be, const bm_pooling *p, bm_extent in,
                              bm_extent out, const float *x, const float *y,
                              const float *dy, float *dx)
{
    bm_panes all = panes(be, p, in, out);
    bm_sliding s = sliding(p, &all);
    size_t n = numbers(in, p->height, p->channels);
    bm_in from = bm_cuda_in(be, x, n);
    bm_in slopes =
        bm_cuda_in(be, dy, numbers(out, all.out_height, p->channels));
    bm_out to = bm_cuda_out(be, dx, n);
    cudaStream_t stream = bm_cuda_of(be)->stream;

    (void)y;
    BM_CUDA(be, bm_pooling_is_plain(p)
                    ? bm_kernel_pooling_backward(stream, &all, from, slopes, to)
                    : bm_kernel_sliding_backward(stream, &s, from, slopes, to));
}
