/*
 * cpu_isa.h - the loops of the cpu backend that are compiled once for each
 * instruction set, see core/isa.h: those of cpu_product.c, cpu_bytes.c,
 * cpu_matrix.c and cpu_*loops.c.
 *
 * Results of different sets may differ in the last bits where tanh, sigmoid,
 * gelu or a product of matrices is involved; all other results have the same
 * bits.
 */
#ifndef BM_COMPUTE_CPU_LOOPS_CPU_ISA_H
#define BM_COMPUTE_CPU_LOOPS_CPU_ISA_H

#include "compute/adam.h"
#include "compute/backend.h"
#include "compute/cpu/loops/cpu_image_loops.h"
#include "compute/cpu/loops/cpu_loss_loops.h"
#include "core/isa.h"

#include <stdint.h>

/*
 * Elementwise loops over n floats; y may be x. The error of sigmoid and tanh is
 * at most 3 units in the last place for results of at least 2^-126; smaller
 * results stay below 2^-126. NaN stays NaN.
 */
typedef struct bm_loops {
    void (*axpby)(size_t n, float a, const float *x, float b, float *y);
    /* y [n] += the rows of x, in order; they are `apart` floats apart. */
    void (*add_rows)(size_t rows, size_t n, size_t apart, const float *x,
                     float *y);
    void (*activate)(bm_activation f, size_t n, const float *x, float *y);
    void (*activate_back)(bm_activation f, size_t n, const float *y,
                          const float *dy, float *dx);
    /* y = a sigmoid(b), and back: da and db from dy. */
    void (*gate)(size_t n, const float *a, const float *b, float *y);
    void (*gate_back)(size_t n, const float *a, const float *b, const float *dy,
                      float *da, float *db);
    /* dx = dy f'(x) of f(x) = x sigmoid(x); dx may be dy. */
    void (*swish_back)(size_t n, const float *x, const float *dy, float *dx);
    /* f(x) = x Phi(x), with Phi, the distribution function of normal numbers,
     * within 6 units in the last place, and dx = dy f'(x), f' within 2^-22; dx
     * may be dy. */
    void (*gelu)(size_t n, const float *x, float *y);
    void (*gelu_back)(size_t n, const float *x, const float *dy, float *dx);
    /* y [n] += the sum over k < count of x[k apart_x] w[k apart_w], vectors of
     * n floats, in order. */
    void (*taps)(size_t count, size_t n, const float *x, ptrdiff_t apart_x,
                 const float *w, ptrdiff_t apart_w, float *y);
    /* Numbers first .. first + n - 1 of a vector. */
    void (*dropout)(size_t n, float p, uint64_t key, size_t first,
                    const float *x, float *y);
    /* Round to bf16, to nearest even; stored as floats, and as bf16. */
    void (*round_bf16)(size_t n, const float *x, float *y);
    void (*to_bf16)(size_t n, const float *x, uint16_t *y);

    /* The square of the norm of x. The same bits for every instruction set. */
    double (*squares)(size_t n, const float *x);
    /* bm_momentum_step, with g <- scale g instead of clipping. */
    void (*momentum)(const bm_momentum *m, float scale, size_t n,
                     const float *g, float *v, float *w);
    /* See adam.h. The same bits for every instruction set. */
    void (*adam)(const bm_adam_factors *f, size_t n, const float *g, float *m,
                 float *v, float *w);

    /* Layer normalisation of a frame x [n]: y, and its mean and inverse
     * deviation in `moments`. See bm_layernorm. */
    void (*layernorm)(size_t n, const float *x, const float *gamma,
                      const float *beta, float *y, float moments[2]);
    /* Backward; adds to dgamma and dbeta [n]. dx may be NULL. */
    void (*layernorm_back)(size_t n, const float *x, const float moments[2],
                           const float *gamma, const float *dy, float *dx,
                           float *dgamma, float *dbeta);

    /* A row of bm_attention: s [n] <- softmax of scale (s + r). */
    void (*attend)(size_t n, float scale, const float *r, float *s);
    /* d and dr [n] <- the gradient of that, from weights s and d by them. */
    void (*attend_back)(size_t n, float scale, const float *s, float *d,
                        float *dr);

    /*
     * One frame of one sequence of an LSTM of hidden size n: adds b to gates
     * [4, n], turns them into gate values, and computes c and h [n] from them
     * and from c0, the previous cells. c0 = NULL: zeros.
     */
    void (*lstm)(size_t n, float *gates, const float *b, const float *c0,
                 float *c, float *h);
    /* Backward: gate values become gradients of the gates' inputs, dc [n]
     * becomes the gradient of c0. The gradient of h is dh0 + dh1. */
    void (*lstm_back)(size_t n, float *gates, const float *c0, const float *c,
                      const float *dh0, const float *dh1, float *dc);

    /*
     * The same of a GRU, whose product with h0, the previous h, is `moved`
     * [3, n]: turns gates [4, n], of which the first three are products with x,
     * into r, z, n and q, and computes h. h0 = NULL: zeros.
     */
    void (*gru)(size_t n, float *gates, const float *moved, const float *b,
                const float *h0, float *h);
    /* Backward: r, z, n, q become gradients of r's, z's and n's inputs and of
     * q; moved, those of the product. dh [n], a part of the gradient of h,
     * becomes the part of that of h0 which passes by the gates; the other parts
     * are dh0 + dh1. */
    void (*gru_back)(size_t n, float *gates, const float *h0, const float *dh0,
                     const float *dh1, float *dh, float *moved);
} bm_loops;

/*
 * C [m, n] (+)= A [m, k] B [k, n] for few rows m and a B that is used many
 * times: B is packed once, bm_packed() floats.
 */
typedef struct bm_product {
    /* B [k, n] is b, or with `transposed` the transpose of b [n, k]. */
    void (*pack)(bool transposed, size_t k, size_t n, const float *b,
                 float *packed);
    /* lda, ldc: floats from row to row. add: C += A B; else C = A B. */
    void (*multiply)(size_t m, size_t n, size_t k, const float *a, size_t lda,
                     const float *packed, float *c, size_t ldc, bool add);
} bm_product;

/* Enough for every instruction set. */
static inline size_t bm_packed(size_t k, size_t n)
{
    return (n + 31) / 32 * 32 * k;
}

/* The same with a B of bytes, see cpu_bytes.c; k is at most BM_BYTES_MOST. */
typedef struct bm_byte_product {
    /* B [k, n] is the transpose of b [n, k]; packed: bm_packed_bytes(). */
    void (*pack)(size_t k, size_t n, const float *b, void *packed);
    /* x [k] -> q [bm_row_of_bytes(k)], zeros at the end. Returns the step of q;
     * NAN if a number is not finite. */
    float (*round)(size_t k, const float *x, uint8_t *q);
    /* a [m, bm_row_of_bytes(k)], as rounded with these steps [m]. */
    void (*multiply)(size_t m, size_t n, size_t k, const uint8_t *a,
                     const float *steps, const void *packed, float *c,
                     size_t ldc, bool add);
} bm_byte_product;
enum { BM_BYTES_MOST = 1 << 16 };

/* k, filled with zeros. */
static inline size_t bm_row_of_bytes(size_t k)
{
    return (k + 3) / 4 * 4;
}

/* Enough for every instruction set. */
static inline size_t bm_packed_bytes(size_t k, size_t n)
{
    return (n + 31) / 32 * 32 *
           (sizeof(float) + sizeof(int32_t) + bm_row_of_bytes(k));
}

/* C [m, n] = alpha op(A) op(B) + beta C; with beta = 0 C is not read. ld:
 * floats from row to row. */
typedef struct bm_matrices {
    size_t m, n, k;
    float alpha, beta;
    bool trans_a, trans_b;
    const float *a, *b;
    size_t lda, ldb;
    float *c;
    size_t ldc;
} bm_matrices;

/* Large products. The order of the sum for a number of C depends on k alone.
 * `work`: room() floats, aligned to a cache line. */
typedef struct bm_matrix_loops {
    size_t (*room)(const bm_matrices *p);
    void (*multiply)(const bm_matrices *p, float *work);
} bm_matrix_loops;

typedef struct bm_isa {
    const char *name;
    const bm_loops *loops;
    const bm_product *product;
    const bm_byte_product *bytes;
    const bm_matrix_loops *matrix;
    const bm_loss_loops *loss;
    const bm_conv_loops *conv;
    const bm_image_loops *image;
} bm_isa;

/* The tables of the set that bm_isa_choose returns; fails likewise. */
BM_CHECKED bm_status bm_isa_find(const bm_isa **out);

#define X(isa)                                                                 \
    extern const bm_loops bm_loops_##isa;                                      \
    extern const bm_product bm_product_##isa;                                  \
    extern const bm_byte_product bm_byte_product_##isa;                        \
    extern const bm_matrix_loops bm_matrix_loops_##isa;
BM_ISAS(X)
#undef X

#endif
