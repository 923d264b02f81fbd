/*
 * cuda_linear.c - products of matrices and linear layers. The product itself
 * adds the bias and applies relu. In bf16, dx and outputs with an activation
 * are bf16 only. Outputs without one are logits or terms of a sum: floats.
 */
#include "compute/cuda/device/cuda_operations.h"
#include "compute/cuda/kernels/kernels.h"
#include "compute/cuda/libraries/cuda_products.h"
#include "compute/cuda/memory/cuda_forms.h"

void bm_cuda_gemm(bm_backend *be, bool trans_a, bool trans_b, float alpha,
                  bm_tensor a, bm_tensor b, float beta, bm_tensor c)
{
    size_t m = c.dim[0], n = c.dim[1], k = a.dim[trans_a ? 0 : 1];
    float *out = NULL;

    if (k == 0) { /* an empty sum */
        bm_cuda_axpby(be, m * n, 0, c.data, beta, c.data);
        return;
    }
    if (beta != 0)
        (void)bm_cuda_read(be, c.data, m * n);
    out = bm_cuda_write(be, c.data, m * n);
    bm_cuda_multiply(
        be, bm_cuda_of(be)->stream, m, n, k, alpha,
        bm_cuda_factor_of(be, a.data, bm_count(a), a.dim[1], trans_a),
        bm_cuda_factor_of(be, b.data, bm_count(b), b.dim[1], trans_b), beta,
        out, BM_CUDA_F32, n, NULL);
}

void bm_cuda_gemm_batch(bm_backend *be, const bm_gemms *p, const float *a,
                        const float *b, float *c)
{
    bool ta = p->trans_a, tb = p->trans_b;
    size_t in_a = bm_gemms_reach(p->count, ta ? p->k : p->m, ta ? p->m : p->k,
                                 p->lda, p->apart_a);
    size_t in_b = bm_gemms_reach(p->count, tb ? p->n : p->k, tb ? p->k : p->n,
                                 p->ldb, p->apart_b);
    size_t all = bm_gemms_reach(p->count, p->m, p->n, p->ldc, p->apart_c);

    if (all == 0)
        return;
    if (p->k == 0) { /* empty sums */
        bm_cuda_axpby(be, all, 0, c, 0, c);
        return;
    }
    bm_cuda_multiply_batch(be, bm_cuda_of(be)->stream, p,
                           bm_cuda_factor_of(be, a, in_a, p->lda, ta),
                           bm_cuda_factor_of(be, b, in_b, p->ldb, tb),
                           bm_cuda_write(be, c, all));
}

typedef struct target {
    void *c;
    bm_cuda_type type;
} target;

static target target_of(bm_backend *be, float *x, size_t n, bool half)
{
    if (half && bm_cuda_of(be)->precision == BM_BF16)
        return (target){bm_cuda_write16(be, x, n), BM_CUDA_BF16};
    return (target){bm_cuda_write(be, x, n), BM_CUDA_F32};
}

/* In the type of what it is added to. */
static const void *bias_of(bm_backend *be, const float *b, size_t n,
                           bm_cuda_type type)
{
    if (type == BM_CUDA_BF16)
        return bm_cuda_read16(be, b, n);
    return bm_cuda_read(be, b, n);
}

void bm_cuda_linear_forward(bm_backend *be, const bm_linear *l, size_t rows,
                            const float *x, float *y)
{
    size_t K = l->n_in, N = l->n_out;
    bm_cuda_factor a = bm_cuda_factor_of(be, x, rows * K, K, false);
    bm_cuda_factor b = bm_cuda_factor_of(be, l->w, N * K, K, true);
    target to = target_of(be, y, rows * N, l->f != BM_IDENTITY);
    bm_cuda_finish finish = {bias_of(be, l->b, N, to.type), l->f == BM_RELU};

    bm_cuda_multiply(be, bm_cuda_of(be)->stream, rows, N, K, 1, a, b, 0, to.c,
                     to.type, N, &finish);
    if (l->f != BM_IDENTITY && l->f != BM_RELU)
        bm_cuda_activate(be, l->f, rows * N, y, y);
}

/* dy becomes the gradient before the activation, and db its sum over rows. */
static void pass_back(bm_backend *be, const bm_linear *l, size_t rows,
                      const float *y, float *dy, float *db)
{
    size_t N = l->n_out, n = rows * N;
    bm_back p = {.f = l->f, .rows = rows, .cols = N};

    p.y = bm_cuda_in(be, y, n);
    p.dy = bm_cuda_in(be, dy, n);
    p.dx = bm_cuda_out(be, dy, n);
    p.b = bm_cuda_write(be, db, N);
    p.work =
        bm_cuda_scratch(be, bm_kernel_sum_rows_work(rows, N) * sizeof *p.work);
    BM_CUDA(be, bm_kernel_sum_back(bm_cuda_of(be)->stream, &p));
}

void bm_cuda_linear_backward(bm_backend *be, const bm_linear *l, size_t rows,
                             const float *x, const float *y, float *dy,
                             float *dx, float *dw, float *db)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    size_t K = l->n_in, N = l->n_out;
    bm_cuda_factor d;

    if (l->f != BM_IDENTITY)
        pass_back(be, l, rows, y, dy, db);
    else
        bm_cuda_sum_rows(be, bm_matrix(dy, rows, N), db);
    d = bm_cuda_factor_of(be, dy, rows * N, N, false);
    if (dx != NULL) {
        bm_cuda_factor w = bm_cuda_factor_of(be, l->w, N * K, K, false);
        target to = target_of(be, dx, rows * K, true);

        bm_cuda_multiply(be, stream, rows, K, N, 1, d, w, 0, to.c, to.type, K,
                         NULL);
    }
    if (rows == 0) { /* an empty sum */
        bm_cuda_axpby(be, N * K, 0, dw, 0, dw);
        return;
    }
    d.transposed = true;
    bm_cuda_multiply(be, stream, N, K, rows, 1, d,
                     bm_cuda_factor_of(be, x, rows * K, K, false), 0,
                     bm_cuda_write(be, dw, N * K), BM_CUDA_F32, K, NULL);
}
