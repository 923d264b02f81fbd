/* cuda_exchange.c - the operations that exchanges between workers need. */
#include "compute/cuda/device/cuda_operations.h"
#include "compute/cuda/kernels/kernels.h"
#include "compute/cuda/memory/cuda_forms.h"

void bm_cuda_difference(bm_backend *be, size_t n, const float *x,
                        const float *from, float *y, float *non_finite)
{
    bm_cuda *cuda = bm_cuda_of(be);

    x = bm_cuda_read(be, x, n);
    if (from != NULL)
        from = bm_cuda_read(be, from, n);
    y = bm_cuda_write(be, y, n);
    non_finite = bm_cuda_write(be, non_finite, 1);
    BM_CUDA(be,
            cudaMemsetAsync(non_finite, 0, sizeof *non_finite, cuda->stream));
    BM_CUDA(be, bm_kernel_difference(cuda->stream, n, x, from, y, non_finite));
}

void bm_cuda_squares(bm_backend *be, size_t n, const float *x, double *sum)
{
    enum { A_DOUBLE = sizeof(double) / sizeof(float) };
    bm_cuda *cuda = bm_cuda_of(be);

    x = bm_cuda_read(be, x, n);
    (void)bm_cuda_write(be, (float *)(void *)sum, A_DOUBLE);
    BM_CUDA(be, bm_kernel_squares(cuda->stream, n, x, sum, cuda->partial));
}

void bm_cuda_blend(bm_backend *be, size_t n, double a, float *y, double b,
                   const float *x)
{
    if (a == 1 && b == 0)
        return;
    x = bm_cuda_read(be, x, n);
    y = bm_cuda_change(be, y, n, false).x;
    BM_CUDA(be, bm_kernel_blend(bm_cuda_of(be)->stream, n, a, y, b, x));
}

void bm_cuda_filter_slice(bm_backend *be, const bm_filter_step *f, size_t n,
                          const float *g, float *y, double *products)
{
    enum { A_DOUBLE = sizeof(double) / sizeof(float) };
    size_t chunks = (n + BM_FILTER_CHUNK - 1) / BM_FILTER_CHUNK;
    bm_filter_step step = *f;

    g = bm_cuda_read(be, g, n);
    if (f->model != NULL) {
        step.model = bm_cuda_change(be, f->model, n, false).x;
        step.delta = bm_cuda_change(be, f->delta, n, false).x;
        y = bm_cuda_write(be, y, n);
    } else {
        y = bm_cuda_change(be, y, n, false).x;
    }
    (void)bm_cuda_write(be, (float *)(void *)products, 3 * chunks * A_DOUBLE);
    BM_CUDA(be,
            bm_kernel_filter(bm_cuda_of(be)->stream, &step, n, g, y, products));
}
