/* cuda_layernorm.c - layer normalisation of each frame, by layernorm.cu. */
#include "compute/cuda/device/cuda_operations.h"
#include "compute/cuda/kernels/kernels.h"
#include "compute/cuda/memory/cuda_forms.h"
#include "compute/cuda/memory/cuda_ring.h"

size_t bm_cuda_layernorm_kept(bm_backend *be, const bm_layernorm *n,
                              bm_extent e)
{
    (void)be;
    (void)n;
    return 2 * e.T * e.B;
}

static bm_layernorm_pass pass(bm_backend *be, const bm_layernorm *n,
                              bm_extent e, const float *x, float *kept)
{
    return (bm_layernorm_pass){.frames = e.T * e.B,
                               .B = e.B,
                               .width = n->width,
                               .lengths = bm_cuda_frames(be, e),
                               .gamma = bm_cuda_read(be, n->gamma, n->width),
                               .beta = bm_cuda_read(be, n->beta, n->width),
                               .x = bm_cuda_in(be, x, e.T * e.B * n->width),
                               .moments = kept};
}

void bm_cuda_layernorm_forward(bm_backend *be, const bm_layernorm *n,
                               bm_extent e, const float *x, float *y,
                               float *kept)
{
    bm_layernorm_pass p = pass(be, n, e, x, kept);

    (void)bm_cuda_write(be, kept, bm_cuda_layernorm_kept(be, n, e));
    p.y = bm_cuda_out(be, y, p.frames * p.width);
    BM_CUDA(be, bm_kernel_layernorm_forward(bm_cuda_of(be)->stream, &p));
}

void bm_cuda_layernorm_backward(bm_backend *be, const bm_layernorm *n,
                                bm_extent e, const float *x, const float *dy,
                                float *kept, float *dx, float *dgamma,
                                float *dbeta)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    bm_layernorm_pass p = pass(be, n, e, x, kept);

    p.dy = bm_cuda_in(be, dy, p.frames * p.width);
    p.dgamma = bm_cuda_write(be, dgamma, p.width);
    p.dbeta = bm_cuda_write(be, dbeta, p.width);
    p.work = bm_cuda_scratch(be, bm_kernel_layernorm_work(&p) * sizeof *p.work);
    BM_CUDA(be, bm_kernel_layernorm_slopes(stream, &p));
    if (dx == NULL)
        return;
    p.dx = bm_cuda_out(be, dx, p.frames * p.width);
    BM_CUDA(be, bm_kernel_layernorm_backward(stream, &p));
}
