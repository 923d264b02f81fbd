/* cuda_consistency.c - two views of each sequence are to agree. */
#include "compute/cuda/device/cuda_operations.h"
#include "compute/cuda/kernels/kernels.h"
#include "compute/cuda/memory/cuda_forms.h"
#include "compute/cuda/memory/cuda_ring.h"

void bm_cuda_consistency(bm_backend *be, bm_extent e, float weight, bm_tensor y,
                         bm_tensor dy)
{
    bm_agreement a = {.T = e.T, .B = e.B, .C = y.dim[2]};
    size_t n = 0;

    for (size_t b = 0; b < e.B; b++)
        n += e.frames[b] > 0;
    a.factor = n > 0 ? (float)((double)weight / (double)n) : 0;
    a.frames = bm_cuda_frames(be, e);
    if (be->failed != BM_OK)
        return;
    a.y = bm_cuda_read(be, y.data, bm_count(y));
    a.dy = bm_cuda_change(be, dy.data, bm_count(dy),
                          bm_cuda_of(be)->precision == BM_BF16);
    if (be->failed == BM_OK)
        BM_CUDA(be, bm_kernel_consistency(bm_cuda_of(be)->stream, &a));
}
