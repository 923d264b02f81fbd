/* cuda_depthwise.c - convolution over time of each feature alone, by
 * depthwise.cu. */
#include "compute/cuda/device/cuda_operations.h"
#include "compute/cuda/kernels/kernels.h"
#include "compute/cuda/memory/cuda_forms.h"
#include "compute/cuda/memory/cuda_ring.h"

static bm_depthwise_pass pass(bm_backend *be, const bm_depthwise *c,
                              bm_extent in, bm_extent out, const float *x)
{
    return (bm_depthwise_pass){
        .frames = in.T,
        .out_frames = out.T,
        .B = in.B,
        .width = c->width,
        .size = c->time.size,
        .stride = c->time.stride,
        .before = c->time.before,
        .in = bm_cuda_frames(be, in),
        .out = bm_cuda_frames(be, out),
        .w = bm_cuda_read(be, c->w, c->time.size * c->width),
        .b = bm_cuda_read(be, c->b, c->width),
        .x = bm_cuda_in(be, x, in.T * in.B * c->width),
    };
}

void bm_cuda_depthwise_forward(bm_backend *be, const bm_depthwise *c,
                               bm_extent in, bm_extent out, const float *x,
                               float *y)
{
    bm_depthwise_pass p = pass(be, c, in, out, x);

    p.y = bm_cuda_out(be, y, out.T * out.B * c->width);
    BM_CUDA(be, bm_kernel_depthwise_forward(bm_cuda_of(be)->stream, &p));
}

void bm_cuda_depthwise_backward(bm_backend *be, const bm_depthwise *c,
                                bm_extent in, bm_extent out, const float *x,
                                const float *dy, float *dx, float *dw,
                                float *db)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    bm_depthwise_pass p = pass(be, c, in, out, x);

    p.dy = bm_cuda_in(be, dy, out.T * out.B * c->width);
    p.dw = bm_cuda_write(be, dw, c->time.size * c->width);
    p.db = bm_cuda_write(be, db, c->width);
    p.work = bm_cuda_scratch(be, bm_kernel_depthwise_work(&p) * sizeof *p.work);
    BM_CUDA(be, bm_kernel_depthwise_slopes(stream, &p));
    if (dx == NULL)
        return;
    p.dx = bm_cuda_out(be, dx, in.T * in.B * c->width);
    BM_CUDA(be, bm_kernel_depthwise_backward(stream, &p));
}
