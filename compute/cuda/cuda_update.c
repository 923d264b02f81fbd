/* cuda_update.c - the update of the weights. The host does not wait for it: the
 * device compares the norm with its limit. */
#include "compute/cuda/device/cuda_operations.h"
#include "compute/cuda/kernels/kernels.h"
#include "compute/cuda/memory/cuda_forms.h"

enum { A_DOUBLE = sizeof(double) / sizeof(float) };

void bm_cuda_momentum_step(bm_backend *be, const bm_momentum *m, size_t n,
                           size_t statistics, float *g, float *v, float *w,
                           double *skipped)
{
    bm_cuda *cuda = bm_cuda_of(be);
    float *count = (float *)(void *)skipped;
    size_t all = n + statistics;
    bm_momentum_update u = {.of = *m, .n = n, .statistics = statistics};

    u.g = bm_cuda_read(be, g, all);
    u.v = bm_cuda_change(be, v, n, false).x;
    u.w = bm_cuda_change(be, w, all, false).x;
    if (cuda->precision == BM_BF16)
        u.w16 = bm_cuda_write_both(be, w, all);
    u.skipped = bm_cuda_change(be, count, A_DOUBLE, false).x;
    BM_CUDA(be, bm_kernel_update(cuda->stream, &u, cuda->multiprocessors,
                                 cuda->partial));
}

void bm_cuda_adam_step(bm_backend *be, const bm_adam *a, size_t n,
                       size_t statistics, float *g, float *m, float *v,
                       float *w, float *t, double *skipped)
{
    bm_cuda *cuda = bm_cuda_of(be);
    float *count = (float *)(void *)skipped;
    size_t all = n + statistics;
    bm_adam_update u = {.of = *a, .n = n, .statistics = statistics};

    u.g = bm_cuda_read(be, g, all);
    u.m = bm_cuda_change(be, m, n, false).x;
    u.v = bm_cuda_change(be, v, n, false).x;
    u.w = bm_cuda_change(be, w, all, false).x;
    if (cuda->precision == BM_BF16)
        u.w16 = bm_cuda_write_both(be, w, all);
    u.t = bm_cuda_change(be, t, 1, false).x;
    u.skipped = bm_cuda_change(be, count, A_DOUBLE, false).x;
    BM_CUDA(be, bm_kernel_adam(cuda->stream, &u, cuda->multiprocessors,
                               cuda->partial));
}

void bm_cuda_unit(bm_backend *be, size_t n, const float *x, float *y)
{
    bm_cuda *cuda = bm_cuda_of(be);
    const float *from = bm_cuda_read(be, x, n);

    BM_CUDA(be, bm_kernel_unit(cuda->stream, n, from, bm_cuda_write(be, y, n),
                               cuda->multiprocessors, cuda->partial));
}
