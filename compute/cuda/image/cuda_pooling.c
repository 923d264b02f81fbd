/* cuda_pooling.c - max pooling over windows that do not overlap. */
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

void bm_cuda_pooling_forward(bm_backend *be, const bm_pooling *p, bm_extent in,
                             bm_extent out, const float *x, float *y)
{
    bm_panes all = panes(be, p, in, out);
    bm_in from = bm_cuda_in(be, x, numbers(in, p->height, p->channels));
    bm_out to = bm_cuda_out(be, y, numbers(out, all.out_height, p->channels));

    BM_CUDA(be,
            bm_kernel_pooling_forward(bm_cuda_of(be)->stream, &all, from, to));
}

/* The position of each maximum is found again in x; y is not read. */
void bm_cuda_pooling_backward(bm_backend *be, const bm_pooling *p, bm_extent in,
                              bm_extent out, const float *x, const float *y,
                              const float *dy, float *dx)
{
    bm_panes all = panes(be, p, in, out);
    size_t n = numbers(in, p->height, p->channels);
    bm_in from = bm_cuda_in(be, x, n);
    bm_in slopes =
        bm_cuda_in(be, dy, numbers(out, all.out_height, p->channels));
    bm_out to = bm_cuda_out(be, dx, n);

    (void)y;
    BM_CUDA(be, bm_kernel_pooling_backward(bm_cuda_of(be)->stream, &all, from,
                                           slopes, to));
}
