/* cuda_attention.c - the weights of attention, by attention.cu. */
#include "compute/cuda/device/cuda_operations.h"
#include "compute/cuda/kernels/kernels.h"
#include "compute/cuda/memory/cuda_forms.h"
#include "compute/cuda/memory/cuda_ring.h"

void bm_cuda_positions(bm_backend *be, size_t T, size_t D, float *y)
{
    float *to = bm_cuda_write(be, y, (2 * T - 1) * D);

    BM_CUDA(be, bm_kernel_positions(bm_cuda_of(be)->stream, T, D, to));
}

static bm_attention_pass pass(bm_backend *be, const bm_attention *a,
                              bm_extent e)
{
    return (bm_attention_pass){.T = e.T,
                               .B = e.B,
                               .heads = a->heads,
                               .scale = a->scale,
                               .lengths = bm_cuda_frames(be, e)};
}

void bm_cuda_attention_weights(bm_backend *be, const bm_attention *a,
                               bm_extent e, const float *r, float *s)
{
    bm_attention_pass p = pass(be, a, e);
    size_t rows = e.B * a->heads * e.T;

    if (rows == 0)
        return;
    p.r = bm_cuda_read(be, r, rows * (2 * e.T - 1));
    (void)bm_cuda_read(be, s, rows * e.T);
    p.s = bm_cuda_write(be, s, rows * e.T);
    BM_CUDA(be, bm_kernel_attention_weights(bm_cuda_of(be)->stream, &p));
}

void bm_cuda_attention_back(bm_backend *be, const bm_attention *a, bm_extent e,
                            const float *s, float *d, float *dr)
{
    bm_attention_pass p = pass(be, a, e);
    size_t rows = e.B * a->heads * e.T;

    if (rows == 0)
        return;
    p.from = bm_cuda_read(be, s, rows * e.T);
    (void)bm_cuda_read(be, d, rows * e.T);
    p.s = bm_cuda_write(be, d, rows * e.T);
    p.dr = bm_cuda_write(be, dr, rows * (2 * e.T - 1));
    BM_CUDA(be, bm_kernel_attention_back(bm_cuda_of(be)->stream, &p));
}
