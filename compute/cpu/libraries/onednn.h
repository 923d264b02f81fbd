/*
 * onednn.h - products of matrices by oneDNN: faster than a BLAS if a factor is
 * small, and able to use a processor's units for bf16. Its C interface changed
 * between versions 2 and 3; onednn.c supports both.
 *
 * C [m, n] = op(A) op(B), row-major, with `ld` numbers from row to row. In a
 * build without oneDNN functions fail with BM_ERR_UNSUPPORTED. The first product
 * of a thread sets the number of OpenMP threads that it starts to one.
 */
#ifndef BM_COMPUTE_CPU_LIBRARIES_ONEDNN_H
#define BM_COMPUTE_CPU_LIBRARIES_ONEDNN_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether this build has oneDNN, and its version and the kernels that it chose
 * for this processor, "2.6.3, kernels avx2", in a buffer of the calling thread;
 * NULL without oneDNN. */
bool bm_onednn_has(void);
const char *bm_onednn_version(void);

/* C = alpha op(A) op(B) + beta C, in fp32. Fails with BM_ERR_MEMORY if there is
 * no memory to pack A and B. */
BM_CHECKED bm_status bm_onednn_sgemm(bool trans_a, bool trans_b, size_t m,
                                     size_t n, size_t k, float alpha,
                                     const float *a, size_t lda, const float *b,
                                     size_t ldb, float beta, float *c,
                                     size_t ldc);

/* This machine's units that multiply bf16: pairs within vectors (AVX-512 BF16),
 * or matrices (AMX). */
typedef enum bm_onednn_units {
    BM_DNN_NONE,
    BM_DNN_PAIRS,
    BM_DNN_MATRICES,
} bm_onednn_units;
bm_onednn_units bm_onednn_bf16(void);

/* Products with A and B in bf16, sums and C in fp32. Several threads may use
 * one at a time. */
typedef struct bm_onednn bm_onednn;
BM_CHECKED bm_status bm_onednn_open(bm_onednn **out);
void bm_onednn_close(bm_onednn *d);

typedef struct bm_onednn_product {
    size_t m, n, k;
    size_t lda, ldb, ldc;
    bool trans_a, trans_b;
    bool packed; /* B is from bm_onednn_pack; ldb and trans_b are ignored */
    bool add;    /* C += */
} bm_onednn_product;

BM_CHECKED bm_status bm_onednn_multiply(bm_onednn *d,
                                        const bm_onednn_product *p,
                                        const uint16_t *a, const void *b,
                                        float *c);

/* For a B [k, n] that is used many times: the bytes that it takes when packed,
 * and b [k, n], or with `transposed` [n, k], packed. */
BM_CHECKED bm_status bm_onednn_packed(bm_onednn *d, size_t k, size_t n,
                                      size_t *bytes);
BM_CHECKED bm_status bm_onednn_pack(bm_onednn *d, bool transposed, size_t k,
                                    size_t n, const uint16_t *b, void *packed);

#endif
