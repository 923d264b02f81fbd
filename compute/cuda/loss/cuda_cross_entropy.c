/* cuda_cross_entropy.c - cross entropy of frames. */
#include "compute/cuda/device/cuda_operations.h"
#include "compute/cuda/kernels/kernels.h"
#include "compute/cuda/memory/cuda_forms.h"
#include "compute/cuda/memory/cuda_ring.h"

#include <math.h>

static size_t sum(const int32_t *x, size_t n)
{
    size_t all = 0;

    for (size_t i = 0; i < n; i++)
        all += (size_t)x[i];
    return all;
}

void bm_cuda_cross_entropy(bm_backend *be, bm_extent e, bm_targets t,
                           float smoothing, bm_tensor y, bm_tensor dy,
                           bm_score *score)
{
    enum { A_SCORE = sizeof *score / sizeof(float) };
    size_t n = bm_count(y), all = sum(e.frames, e.B);
    bm_cross c = {.T = e.T,
                  .B = e.B,
                  .C = y.dim[2],
                  .factor = all > 0 ? (float)(1 / (double)all) : 0,
                  .on = 1 - smoothing,
                  .other = smoothing / (float)y.dim[2],
                  .chance = log((double)y.dim[2])};

    c.of_frames = bm_cuda_scratch(be, (e.T + 1) * e.B * sizeof *c.of_frames +
                                          sizeof *c.verdict);
    c.frames = bm_cuda_frames(be, e);
    c.classes = bm_cuda_send(be, t.classes, all * sizeof *t.classes);
    c.begins = bm_cuda_begins(be, t.count, e.B);
    if (be->failed != BM_OK)
        return;
    c.of_sequences = c.of_frames + e.T * e.B;
    c.verdict = (bm_cross_verdict *)(void *)(c.of_sequences + e.B);
    c.y = bm_cuda_read(be, y.data, n);
    c.dy.half = bm_cuda_of(be)->precision == BM_BF16;
    if (dy.data != NULL)
        c.dy = bm_cuda_out(be, dy.data, n);
    c.score = bm_cuda_change(be, (float *)(void *)score, A_SCORE, false).x;
    BM_CUDA(be, bm_kernel_cross_entropy(bm_cuda_of(be)->stream, &c));
}
