/* cpu.h - state and helpers of the cpu backend. */
#ifndef BM_COMPUTE_CPU_CPU_H
#define BM_COMPUTE_CPU_CPU_H

#include "compute/backend_ops.h"
#include "compute/cpu/cpu_held.h"
#include "compute/cpu/libraries/onednn.h"
#include "compute/cpu/loops/cpu_isa.h"
#include "compute/cpu/thread_pool.h"

/* How a product of bf16 factors is computed. */
typedef enum bm_bf16_units {
    BM_BF16_OF_FP32, /* factors are rounded to bf16, then multiplied in fp32 */
    BM_BF16_OF_DNN,  /* by the processor's units for bf16, through oneDNN */
} bm_bf16_units;

/* A buffer that grows. */
typedef struct bm_scratch {
    void *x;
    size_t bytes;
} bm_scratch;

/* Makes s->x at least `bytes` long, aligned to a cache line. Its contents are
 * lost. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_reserve(bm_scratch *s, size_t bytes);

typedef struct bm_cpu {
    const bm_isa *isa; /* borrowed */
    bm_thread_pool *pool;
    bm_precision precision;
    bm_bf16_units bf16;
    bm_onednn *dnn;       /* BM_BF16_OF_DNN, else NULL */
    bm_scratch factor[2]; /* A and B of a product in bf16; A of one in bytes */
    bm_held held;
    bm_scratch work;    /* for products in loops of ours */
    bm_scratch squares; /* doubles: partial sums of a norm */
    bm_scratch scores;  /* bm_scores: one for each sequence of a batch */
} bm_cpu;

static inline bm_cpu *bm_cpu_of(const bm_backend *be)
{
    return be->self;
}

static inline const bm_isa *bm_cpu_isa(const bm_backend *be)
{
    return bm_cpu_of(be)->isa;
}

static inline void bm_cpu_run(const bm_backend *be, size_t parts,
                              void (*work)(void *self, size_t part), void *self)
{
    bm_thread_pool_run(bm_cpu_of(be)->pool, parts, work, self);
}

/* The units that BMUF_BF16 names, or the faster ones on this machine. Fails
 * with BM_ERR_CONFIG if BMUF_BF16 is invalid. */
BM_CHECKED bm_status bm_bf16_choose(bm_bf16_units *out);

/* bm_remember for a failure on another thread, whose message is not visible
 * here: reports the failure again. */
void bm_cpu_remember(bm_backend *be, bm_status of_a_thread);

/* A factor of a product; `ld` floats from row to row. */
typedef struct bm_factor {
    const float *x;
    size_t ld;
    bool transposed;
    bool rounded; /* by bm_cpu_round */
} bm_factor;

/* Rounds x [n] as products would, so that a repeated factor is rounded once.
 * Returns false and leaves x alone if products do not round factors to floats.
 */
bool bm_cpu_round(bm_backend *be, size_t n, float *x);

/* C [m, n] = alpha op(A) op(B) + beta C, in the backend's precision, on all
 * threads; ldc floats from row to row. */
void bm_cpu_multiply(bm_backend *be, size_t m, size_t n, size_t k, float alpha,
                     bm_factor a, bm_factor b, float beta, float *c,
                     size_t ldc);

/*
 * The same on the calling thread, for few rows m and a B that is used many
 * times: C [m, n] (+)= A [m, k] B [k, n].
 *
 *     size_t floats = bm_cpu_packed(be, k, n);
 *     p = bm_cpu_pack(be, transposed, k, n, b, packed); b [k, n] or [n, k]
 *     bm_cpu_multiply_packed(be, m, n, k, a, lda, scratch, p, ...);
 *
 * `scratch` has m (n + k) floats. `packed` is aligned to a cache line; of a
 * matrix that is held it is not used.
 */
typedef struct bm_cpu_packed_matrix {
    const void *x;
    bool bytes; /* by bm_byte_product, else by bm_product or oneDNN */
} bm_cpu_packed_matrix;

size_t bm_cpu_packed(bm_backend *be, size_t k, size_t n);
bm_cpu_packed_matrix bm_cpu_pack(bm_backend *be, bool transposed, size_t k,
                                 size_t n, const float *b, float *packed);
bm_status bm_cpu_multiply_packed(const bm_backend *be, size_t m, size_t n,
                                 size_t k, const float *a, size_t lda,
                                 float *scratch, bm_cpu_packed_matrix packed,
                                 float *c, size_t ldc, bool add);

/* The operations: see operations.h. */
#define BM_OPERATION(name, requirement, parameters, arguments)                 \
    void bm_cpu_##name parameters;
#define BM_SIZE_OPERATION(name, requirement, parameters, arguments)            \
    size_t bm_cpu_##name parameters;
#define BM_DEVICE_OPERATION(...)
#include "compute/operations.h"

/* Frame t of sequence b among frames of n floats. */
static inline size_t bm_cpu_at(bm_extent e, size_t t, size_t b, size_t n)
{
    return (t * e.B + b) * n;
}

#endif
