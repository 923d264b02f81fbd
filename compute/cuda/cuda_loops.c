/* cuda_loops.c - small operations, each on the forms that need no conversion.
 */
#include "compute/cuda/device/cuda_operations.h"
#include "compute/cuda/kernels/kernels.h"
#include "compute/cuda/memory/cuda_forms.h"
#include "compute/cuda/memory/cuda_ring.h"

void bm_cuda_add_rows(bm_backend *be, bm_tensor y, const float *b)
{
    size_t rows = y.dim[0], cols = y.dim[1];
    const float *from = bm_cuda_read(be, b, cols);
    float *to = NULL;

    (void)bm_cuda_read(be, y.data, rows * cols);
    to = bm_cuda_write(be, y.data, rows * cols);
    BM_CUDA(be,
            bm_kernel_add_rows(bm_cuda_of(be)->stream, rows, cols, to, from));
}

void bm_cuda_sum_rows(bm_backend *be, bm_tensor y, float *b)
{
    size_t rows = y.dim[0], cols = y.dim[1];
    bm_in from = bm_cuda_in(be, y.data, rows * cols);
    float *to = bm_cuda_write(be, b, cols);
    float *work =
        bm_cuda_scratch(be, bm_kernel_sum_rows_work(rows, cols) * sizeof *work);

    BM_CUDA(be, bm_kernel_sum_rows(bm_cuda_of(be)->stream, rows, cols, from,
                                   work, to));
}

void bm_cuda_activate(bm_backend *be, bm_activation f, size_t n, const float *x,
                      float *y)
{
    bm_in from = bm_cuda_in(be, x, n);
    bm_out to = bm_cuda_out(be, y, n);

    BM_CUDA(be, bm_kernel_activate(bm_cuda_of(be)->stream, f, n, from, to));
}

void bm_cuda_activate_back(bm_backend *be, bm_activation f, size_t n,
                           const float *y, const float *dy, float *dx)
{
    bm_in out = bm_cuda_in(be, y, n);
    bm_in from = bm_cuda_in(be, dy, n);
    bm_out to = bm_cuda_out(be, dx, n);

    BM_CUDA(be, bm_kernel_activate_back(bm_cuda_of(be)->stream, f, n, out, from,
                                        to));
}

void bm_cuda_swish(bm_backend *be, size_t n, const float *x, float *y)
{
    bm_in from = bm_cuda_in(be, x, n);
    bm_out to = bm_cuda_out(be, y, n);

    BM_CUDA(be, bm_kernel_swish(bm_cuda_of(be)->stream, n, from, to));
}

void bm_cuda_swish_back(bm_backend *be, size_t n, const float *x,
                        const float *dy, float *dx)
{
    bm_in at = bm_cuda_in(be, x, n);
    bm_in from = bm_cuda_in(be, dy, n);
    bm_out to = bm_cuda_out(be, dx, n);

    BM_CUDA(be, bm_kernel_swish_back(bm_cuda_of(be)->stream, n, at, from, to));
}

void bm_cuda_gelu(bm_backend *be, size_t n, const float *x, float *y)
{
    bm_in from = bm_cuda_in(be, x, n);
    bm_out to = bm_cuda_out(be, y, n);

    BM_CUDA(be, bm_kernel_gelu(bm_cuda_of(be)->stream, n, from, to));
}

void bm_cuda_gelu_back(bm_backend *be, size_t n, const float *x,
                       const float *dy, float *dx)
{
    bm_in at = bm_cuda_in(be, x, n);
    bm_in from = bm_cuda_in(be, dy, n);
    bm_out to = bm_cuda_out(be, dx, n);

    BM_CUDA(be, bm_kernel_gelu_back(bm_cuda_of(be)->stream, n, at, from, to));
}

void bm_cuda_glu(bm_backend *be, size_t rows, size_t n, const float *x,
                 float *y)
{
    bm_in from = bm_cuda_in(be, x, 2 * rows * n);
    bm_out to = bm_cuda_out(be, y, rows * n);

    BM_CUDA(be, bm_kernel_glu(bm_cuda_of(be)->stream, rows, n, from, to));
}

void bm_cuda_glu_back(bm_backend *be, size_t rows, size_t n, const float *x,
                      const float *dy, float *dx)
{
    bm_in at = bm_cuda_in(be, x, 2 * rows * n);
    bm_in from = bm_cuda_in(be, dy, rows * n);
    bm_out to = bm_cuda_out(be, dx, 2 * rows * n);

    BM_CUDA(be,
            bm_kernel_glu_back(bm_cuda_of(be)->stream, rows, n, at, from, to));
}

void bm_cuda_dropout(bm_backend *be, size_t n, float p, uint64_t key,
                     const float *x, float *y)
{
    bm_in from = bm_cuda_in(be, x, n);
    bm_out to = bm_cuda_out(be, y, n);

    BM_CUDA(be, bm_kernel_dropout(bm_cuda_of(be)->stream, n, p, key, from, to));
}

void bm_cuda_weight_dropout(bm_backend *be, size_t n, float p, uint64_t key,
                            const float *x, float *y)
{
    bm_in from = {bm_cuda_read(be, x, n), false};
    bm_out to = {bm_cuda_write(be, y, n), false};

    BM_CUDA(be, bm_kernel_dropout(bm_cuda_of(be)->stream, n, p, key, from, to));
}

static bool is_padded(bm_extent e)
{
    for (size_t b = 0; b < e.B; b++)
        if ((size_t)e.frames[b] < e.T)
            return true;
    return false;
}

void bm_cuda_clear_padding(bm_backend *be, bm_extent e, bm_tensor x)
{
    size_t n = bm_count(x);
    const int32_t *frames = NULL;
    bm_out to;

    if (!is_padded(e))
        return;
    frames = bm_cuda_frames(be, e);
    to = bm_cuda_change(be, x.data, n, bm_cuda_in(be, x.data, n).half);
    BM_CUDA(be, bm_kernel_clear_padding(bm_cuda_of(be)->stream, e.T, e.B,
                                        x.dim[2], frames, to));
}

/* Floats from the beginning of the first run to the end of the last. */
static size_t reach(const bm_runs *r, size_t outer, size_t inner)
{
    return (r->outer - 1) * outer + (r->inner - 1) * inner + r->n;
}

void bm_cuda_copy_runs(bm_backend *be, const bm_runs *r, const float *x,
                       float *y)
{
    size_t all = r->outer * r->inner * r->n, from_n, to_n;
    bm_in from;
    bm_out to;
    bool whole;

    if (all == 0)
        return;
    from_n = reach(r, r->outer_x, r->inner_x);
    to_n = reach(r, r->outer_y, r->inner_y);
    whole = all == to_n; /* else what is between the runs is kept */
    from = bm_cuda_in(be, x, from_n);
    if (from.half && !whole && !bm_cuda_in(be, y, to_n).half)
        from = (bm_in){bm_cuda_read(be, x, from_n), false};
    to = whole ? (bm_out){from.half ? (void *)bm_cuda_write16(be, y, to_n)
                                    : bm_cuda_write(be, y, to_n),
                          from.half}
               : bm_cuda_change(be, y, to_n, from.half);
    BM_CUDA(be, bm_kernel_copy_runs(bm_cuda_of(be)->stream, r, from, to));
}
