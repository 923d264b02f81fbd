/* cpu_linear.c - linear layers: a product, a bias, an activation. */
#include "compute/cpu/cpu.h"

/* A view for operations that do not change what they read. */
static bm_tensor matrix(const float *x, size_t rows, size_t cols)
{
    return bm_matrix((float *)x, rows, cols);
}

void bm_cpu_linear_forward(bm_backend *be, const bm_linear *l, size_t rows,
                           const float *x, float *y)
{
    size_t K = l->n_in, N = l->n_out;

    bm_gemm(be, false, true, 1, matrix(x, rows, K), matrix(l->w, N, K), 0,
            bm_matrix(y, rows, N));
    bm_add_rows(be, bm_matrix(y, rows, N), l->b);
    if (l->f != BM_IDENTITY)
        bm_activate(be, l->f, rows * N, y, y);
}

void bm_cpu_linear_backward(bm_backend *be, const bm_linear *l, size_t rows,
                            const float *x, const float *y, float *dy,
                            float *dx, float *dw, float *db)
{
    size_t K = l->n_in, N = l->n_out;
    bm_tensor d = bm_matrix(dy, rows, N);

    if (l->f != BM_IDENTITY)
        bm_activate_back(be, l->f, rows * N, y, dy, dy);
    bm_gemm(be, true, false, 1, d, matrix(x, rows, K), 0, bm_matrix(dw, N, K));
    bm_sum_rows(be, d, db);
    if (dx != NULL)
        bm_gemm(be, false, false, 1, d, matrix(l->w, N, K), 0,
                bm_matrix(dx, rows, K));
}
