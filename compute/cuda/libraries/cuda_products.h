/* cuda_products.h - products of matrices, by cublasLt. */
#ifndef BM_COMPUTE_CUDA_LIBRARIES_CUDA_PRODUCTS_H
#define BM_COMPUTE_CUDA_LIBRARIES_CUDA_PRODUCTS_H

#include "compute/cuda/device/cuda_context.h"

/* A matrix to multiply: where it is, its type, numbers from row to row. */
typedef enum bm_cuda_type { BM_CUDA_F32, BM_CUDA_BF16 } bm_cuda_type;
typedef struct bm_cuda_factor {
    const void *x;
    bm_cuda_type type;
    size_t ld;
    bool transposed;
} bm_cuda_factor;

/* What a product does with each number before it is stored. */
typedef struct bm_cuda_finish {
    const void *bias; /* [n], of C's type, added to every row; may be NULL */
    bool relu;
} bm_cuda_finish;

/* BM_ERR_MEMORY; BM_ERR_DEVICE: cublasLt does not start. */
BM_CHECKED bm_status bm_cuda_products_open(bm_backend *be);
void bm_cuda_products_close(bm_backend *be);

/*
 * C [m, n] = finish(alpha op(A) op(B) + beta C), queued on `stream`. A and B
 * have one type; floats are multiplied in the backend's precision, TF32 or
 * fp32. k > 0. finish may be NULL. The bits depend only on shapes, on the
 * alignment of the matrices, and on the kind of device.
 * The backend fails with BM_ERR_DEVICE if cublasLt has no way to multiply.
 */
void bm_cuda_multiply(bm_backend *be, cudaStream_t stream, size_t m, size_t n,
                      size_t k, float alpha, bm_cuda_factor a, bm_cuda_factor b,
                      float beta, void *c, bm_cuda_type c_type, size_t ldc,
                      const bm_cuda_finish *finish);

/* C_i = alpha op(A_i) op(B_i) for i < p->count, likewise, from the factors and
 * C of i = 0; p has their leading dimensions, and p->k > 0. */
void bm_cuda_multiply_batch(bm_backend *be, cudaStream_t stream,
                            const bm_gemms *p, bm_cuda_factor a,
                            bm_cuda_factor b, float *c);

/* x [n] in the form that products take in this precision, as a factor. */
bm_cuda_factor bm_cuda_factor_of(bm_backend *be, const float *x, size_t n,
                                 size_t ld, bool transposed);

#endif
