/*
 * cpu_gemm.c - products of matrices. Large ones use cpu_matrix.c or a library,
 * with a block of C for each thread; small ones with a factor that is used many
 * times use cpu_product.c. In bf16 both factors are rounded first. The units
 * for fp32 then multiply them exactly, since the product of two bf16 has 16
 * bits; the units for bf16 are used through oneDNN (docs/decisions/10-bf16.md
 * describes which of the two is chosen). cpu_bytes.c multiplies with a matrix
 * that is held in bytes.
 */
#include "compute/cpu/cpu.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>

/* Fewer multiplications than this are not worth a second thread. */
static const double SMALL = 1e6;

typedef struct product {
    bm_cpu *cpu;
    size_t m, n, k;
    float alpha, beta;
    bm_factor a, b;
    const uint16_t *a16, *b16; /* the same in bf16, or NULL */
    float *c;
    size_t ldc, parts;
    float *work; /* for cpu_matrix.c, `room` floats for each part; or NULL */
    size_t room;
    _Atomic bm_status status; /* of the last part that failed */
} product;

/* The environment variable BMUF_BF16, fp32 or onednn, overrides the choice. */
bm_status bm_bf16_choose(bm_bf16_units *out)
{
    const char *given = getenv("BMUF_BF16");
    bm_onednn_units units = bm_onednn_bf16();
    bool own = units == BM_DNN_MATRICES;

#ifdef __x86_64__
    if (units == BM_DNN_PAIRS)
        own = __builtin_cpu_is("amd");
#endif
    if (given != NULL && strcmp(given, "fp32") == 0)
        own = false;
    else if (given != NULL && strcmp(given, "onednn") == 0)
        own = true;
    else if (given != NULL && given[0] != '\0')
        return BM_FAIL(BM_ERR_CONFIG,
                       "BMUF_BF16=%s is invalid; use fp32 or onednn", given);
    if (own && units == BM_DNN_NONE)
        return BM_FAIL(BM_ERR_UNSUPPORTED, "BMUF_BF16=%s: %s", given,
                       bm_onednn_version() == NULL
                           ? "this build has no oneDNN"
                           : "this processor has no units for bf16");
    *out = own ? BM_BF16_OF_DNN : BM_BF16_OF_FP32;
    return BM_OK;
}

void bm_cpu_remember(bm_backend *be, bm_status of_a_thread)
{
    if (of_a_thread != BM_OK)
        bm_remember(be, BM_FAIL(of_a_thread, of_a_thread == BM_ERR_MEMORY
                                                 ? "no memory for a product of "
                                                   "matrices"
                                                 : "a product of matrices "
                                                   "failed"));
}

/* ---- one block of C ----------------------------------------------------- */

/* Whether cpu_matrix.c computes a product: where it was faster than oneDNN
 * (docs/performance.md). */
static bool is_own(const product *p)
{
    enum { FEW = 128, MANY = 1024 };

    if (p->a.transposed)
        return !p->b.transposed && p->k >= MANY && p->m >= FEW;
    return p->b.transposed && p->k >= FEW;
}

static bm_matrices matrices(const product *p, size_t m, size_t n,
                            const float *a, const float *b, float *c)
{
    return (bm_matrices){
        m, n, p->k,    p->alpha, p->beta, p->a.transposed, p->b.transposed,
        a, b, p->a.ld, p->b.ld,  c,       p->ldc};
}

static bm_status multiply_fp32(const product *p, size_t m, size_t n,
                               const float *a, const float *b, float *c)
{
    if (bm_onednn_has())
        return bm_onednn_sgemm(p->a.transposed, p->b.transposed, m, n, p->k,
                               p->alpha, a, p->a.ld, b, p->b.ld, p->beta, c,
                               p->ldc);
    cblas_sgemm(CblasRowMajor, p->a.transposed ? CblasTrans : CblasNoTrans,
                p->b.transposed ? CblasTrans : CblasNoTrans, (int)m, (int)n,
                (int)p->k, p->alpha, a, (int)p->a.ld, b, (int)p->b.ld, p->beta,
                c, (int)p->ldc);
    return BM_OK;
}

static bm_status multiply_bf16(const product *p, size_t m, size_t n,
                               const uint16_t *a, const uint16_t *b, float *c)
{
    bm_onednn_product of = {
        .m = m,
        .n = n,
        .k = p->k,
        .lda = p->a.ld,
        .ldb = p->b.ld,
        .ldc = p->ldc,
        .trans_a = p->a.transposed,
        .trans_b = p->b.transposed,
        .add = p->beta != 0,
    };

    return bm_onednn_multiply(p->cpu->dnn, &of, a, b, c);
}

enum { GRAIN = 48 }; /* whole tiles of every instruction set */

/* C is divided along its longer side. */
static void part(void *self, size_t i)
{
    product *p = self;
    bool down = p->m >= p->n;
    size_t all = down ? p->m : p->n, from = bm_part(all, GRAIN, p->parts, i);
    size_t count = bm_part(all, GRAIN, p->parts, i + 1) - from;
    size_t m = down ? count : p->m, n = down ? p->n : count;
    size_t in_a = !down ? 0 : p->a.transposed ? from : from * p->a.ld;
    size_t in_b = down ? 0 : p->b.transposed ? from * p->b.ld : from;
    float *c = p->c + (down ? from * p->ldc : from);
    bm_status status = BM_OK;

    if (count == 0)
        return;
    if (p->a16 != NULL)
        status = multiply_bf16(p, m, n, p->a16 + in_a, p->b16 + in_b, c);
    else if (p->work != NULL) {
        bm_matrices own = matrices(p, m, n, p->a.x + in_a, p->b.x + in_b, c);
        p->cpu->isa->matrix->multiply(&own, p->work + i * p->room);
    } else
        status = multiply_fp32(p, m, n, p->a.x + in_a, p->b.x + in_b, c);
    if (status != BM_OK)
        p->status = status;
}

/* Scratch for cpu_matrix.c. */
static bm_status reserve_work(product *p)
{
    enum { LINE = 64 / sizeof(float) };
    bool down = p->m >= p->n;
    size_t all = (down ? p->m : p->n) + GRAIN * p->parts;
    size_t most = all / GRAIN / p->parts * GRAIN;
    bm_matrices largest = matrices(p, down ? most : p->m, down ? p->n : most,
                                   p->a.x, p->b.x, p->c);

    p->room = (p->cpu->isa->matrix->room(&largest) + LINE - 1) / LINE * LINE;
    BM_TRY(bm_reserve(&p->cpu->work, p->parts * p->room * sizeof *p->work));
    p->work = p->cpu->work.x;
    return BM_OK;
}

/* ---- rounding ----------------------------------------------------------- */

typedef struct rounding {
    const bm_loops *loops;
    const float *x;
    size_t ld, rows, columns, parts;
    float *rounded;   /* one of them: [rows, columns] */
    uint16_t *halved; /* or in bf16 itself */
} rounding;

static void round_part(void *self, size_t i)
{
    const rounding *r = self;
    size_t to = bm_part(r->rows, 1, r->parts, i + 1);

    for (size_t k = bm_part(r->rows, 1, r->parts, i); k < to; k++)
        if (r->rounded != NULL)
            r->loops->round_bf16(r->columns, r->x + k * r->ld,
                                 r->rounded + k * r->columns);
        else
            r->loops->to_bf16(r->columns, r->x + k * r->ld,
                              r->halved + k * r->columns);
}

/* x [rows, columns] rounded to bf16, contiguous, valid until `into` is used
 * again; as floats, or as bf16 if `halves` is given. */
static bm_status round_factor(bm_backend *be, bm_scratch *into, bm_factor *x,
                              size_t rows, size_t columns,
                              const uint16_t **halves)
{
    bm_cpu *cpu = bm_cpu_of(be);
    rounding r = {cpu->isa->loops,
                  x->x,
                  x->ld,
                  rows,
                  columns,
                  bm_thread_pool_threads(cpu->pool),
                  NULL,
                  NULL};

    if (x->rounded && halves == NULL)
        return BM_OK;
    BM_TRY(bm_reserve(into,
                      rows * columns *
                          (halves != NULL ? sizeof(uint16_t) : sizeof(float))));
    if (halves != NULL)
        *halves = r.halved = into->x;
    else
        x->x = r.rounded = into->x;
    x->ld = columns;
    bm_cpu_run(be, r.parts, round_part, &r);
    return BM_OK;
}

bool bm_cpu_round(bm_backend *be, size_t n, float *x)
{
    enum { ROW = 1 << 12 };
    bm_cpu *cpu = bm_cpu_of(be);
    rounding r = {.loops = cpu->isa->loops,
                  .x = x,
                  .ld = ROW,
                  .rows = n / ROW,
                  .columns = ROW,
                  .parts = bm_thread_pool_threads(cpu->pool),
                  .rounded = x};

    if (cpu->precision != BM_BF16 || cpu->bf16 != BM_BF16_OF_FP32)
        return false;
    bm_cpu_run(be, r.parts, round_part, &r);
    r.loops->round_bf16(n % ROW, x + n / ROW * ROW, x + n / ROW * ROW);
    return true;
}

static bm_status round_factors(bm_backend *be, product *p)
{
    bm_cpu *cpu = bm_cpu_of(be);
    bool halves = cpu->bf16 == BM_BF16_OF_DNN && p->alpha == 1 &&
                  (p->beta == 0 || p->beta == 1);

    BM_TRY(
        round_factor(be, &cpu->factor[0], &p->a, p->a.transposed ? p->k : p->m,
                     p->a.transposed ? p->m : p->k, halves ? &p->a16 : NULL));
    return round_factor(be, &cpu->factor[1], &p->b,
                        p->b.transposed ? p->n : p->k,
                        p->b.transposed ? p->k : p->n, halves ? &p->b16 : NULL);
}

/* ---- bytes -------------------------------------------------------------- */

/* C (+)= A B with a packed B of bytes. */
typedef struct byte_product {
    const bm_byte_product *bytes;
    size_t m, n, k, lda, ldc, parts;
    const float *a;
    const void *b;
    float *c;
    bool add;
    float *steps; /* [m] */
    uint8_t *q;   /* [m, bm_row_of_bytes(k)] */
} byte_product;

/* Floats for `steps` and `q`. */
static size_t room_for_bytes(size_t m, size_t k)
{
    return m + m * bm_row_of_bytes(k) / sizeof(float);
}

/* Rows from .. to - 1, some at a time, so that they stay in the L1 cache. */
static void multiply_bytes(const byte_product *p, size_t from, size_t to)
{
    enum { SOME = 48 };
    size_t row = bm_row_of_bytes(p->k);

    for (size_t i = from; i < to; i++)
        p->steps[i] = p->bytes->round(p->k, p->a + i * p->lda, p->q + i * row);
    for (size_t i = from; i < to; i += SOME)
        p->bytes->multiply(to - i < SOME ? to - i : SOME, p->n, p->k,
                           p->q + i * row, p->steps + i, p->b,
                           p->c + i * p->ldc, p->ldc, p->add);
}

static void byte_part(void *self, size_t i)
{
    const byte_product *p = self;

    multiply_bytes(p, bm_part(p->m, 1, p->parts, i),
                   bm_part(p->m, 1, p->parts, i + 1));
}

/* The transpose of b [n, k] in bytes; NULL: it is not held so. */
static const void *as_bytes(bm_cpu *cpu, size_t k, size_t n, const float *b)
{
    if (!cpu->held.bytes || cpu->precision != BM_FP32 || k > BM_BYTES_MOST)
        return NULL;
    return bm_held_packed(&cpu->held, cpu->isa, true, k, n, b);
}

/* Computes p if B is held in bytes, and returns whether it is. */
static bool multiplied_in_bytes(bm_backend *be, const product *p)
{
    bm_cpu *cpu = p->cpu;
    byte_product of = {.bytes = cpu->isa->bytes,
                       .m = p->m,
                       .n = p->n,
                       .k = p->k,
                       .lda = p->a.ld,
                       .ldc = p->ldc,
                       .parts = p->parts,
                       .a = p->a.x,
                       .c = p->c,
                       .add = p->beta != 0};

    if (p->a.transposed || !p->b.transposed || p->b.ld != p->k ||
        p->alpha != 1 || (p->beta != 0 && p->beta != 1))
        return false;
    of.b = as_bytes(cpu, p->k, p->n, p->b.x);
    if (of.b == NULL || bm_reserve(&cpu->factor[0], room_for_bytes(p->m, p->k) *
                                                        sizeof(float)) != BM_OK)
        return false;
    of.steps = cpu->factor[0].x;
    of.q = (uint8_t *)(of.steps + p->m);
    bm_cpu_run(be, of.parts, byte_part, &of);
    return true;
}

/* ---- a product ---------------------------------------------------------- */

void bm_cpu_multiply(bm_backend *be, size_t m, size_t n, size_t k, float alpha,
                     bm_factor a, bm_factor b, float beta, float *c, size_t ldc)
{
    bm_cpu *cpu = bm_cpu_of(be);
    bool small = (double)m * (double)n * (double)k < SMALL;
    product p = {.cpu = cpu,
                 .m = m,
                 .n = n,
                 .k = k,
                 .alpha = alpha,
                 .beta = beta,
                 .a = a,
                 .b = b,
                 .c = c,
                 .ldc = ldc,
                 .parts = small ? 1 : bm_thread_pool_threads(cpu->pool)};

    if (k == 0) {
        for (size_t i = 0; i < m; i++)
            cpu->isa->loops->axpby(n, 0, c, beta, c + i * ldc);
        return;
    }
    if (m == 0 || n == 0 || multiplied_in_bytes(be, &p))
        return;
    if (cpu->precision == BM_BF16)
        p.status = round_factors(be, &p);
    if (p.status == BM_OK && p.a16 == NULL && is_own(&p))
        p.status = reserve_work(&p);
    if (p.status == BM_OK)
        bm_cpu_run(be, p.parts, part, &p);
    bm_cpu_remember(be, p.status);
}

/* ---- many products ------------------------------------------------------- */

typedef struct many {
    const bm_gemms *p;
    const float *a, *b;
    float *c;
    size_t threads;
    _Atomic bm_status status; /* of the last product that failed */
} many;

static void multiply_each(void *self, size_t part)
{
    many *of = self;
    const bm_gemms *p = of->p;
    product one = {.m = p->m,
                   .n = p->n,
                   .k = p->k,
                   .alpha = p->alpha,
                   .a = {.ld = p->lda, .transposed = p->trans_a},
                   .b = {.ld = p->ldb, .transposed = p->trans_b},
                   .ldc = p->ldc};
    size_t to = bm_part(p->count, 1, of->threads, part + 1);

    for (size_t i = bm_part(p->count, 1, of->threads, part); i < to; i++) {
        bm_status status =
            multiply_fp32(&one, p->m, p->n, of->a + i * p->apart_a,
                          of->b + i * p->apart_b, of->c + i * p->apart_c);

        if (status != BM_OK)
            of->status = status;
    }
}

/* In fp32 a thread takes whole products, of which each has the same bits on any
 * thread. */
void bm_cpu_gemm_batch(bm_backend *be, const bm_gemms *p, const float *a,
                       const float *b, float *c)
{
    size_t threads = bm_thread_pool_threads(bm_cpu_of(be)->pool);
    many of = {p, a, b, c, threads, BM_OK};

    if (bm_cpu_of(be)->precision == BM_FP32 && p->m * p->n * p->k > 0) {
        bm_cpu_run(be, threads, multiply_each, &of);
        bm_cpu_remember(be, of.status);
        return;
    }
    for (size_t i = 0; i < p->count; i++)
        bm_cpu_multiply(be, p->m, p->n, p->k, p->alpha,
                        (bm_factor){.x = a + i * p->apart_a,
                                    .ld = p->lda,
                                    .transposed = p->trans_a},
                        (bm_factor){.x = b + i * p->apart_b,
                                    .ld = p->ldb,
                                    .transposed = p->trans_b},
                        0, c + i * p->apart_c, p->ldc);
}

/* ---- few rows, B used many times ---------------------------------------- */

static bool by_dnn(const bm_cpu *cpu)
{
    return cpu->precision == BM_BF16 && cpu->bf16 == BM_BF16_OF_DNN;
}

size_t bm_cpu_packed(bm_backend *be, size_t k, size_t n)
{
    bm_cpu *cpu = bm_cpu_of(be);
    size_t bytes = 0;
    bm_status status = BM_OK;

    if (!by_dnn(cpu))
        return bm_packed(k, n);
    status = bm_onednn_packed(cpu->dnn, k, n, &bytes);
    if (status != BM_OK)
        bm_remember(be, status);
    return bytes / sizeof(float) + 1;
}

bm_cpu_packed_matrix bm_cpu_pack(bm_backend *be, bool transposed, size_t k,
                                 size_t n, const float *b, float *packed)
{
    bm_cpu *cpu = bm_cpu_of(be);
    const void *held = transposed ? as_bytes(cpu, k, n, b) : NULL;
    bm_factor all = {.x = b, .ld = transposed ? k : n};
    const uint16_t *halves = NULL;
    bm_status status = BM_OK;

    if (held != NULL)
        return (bm_cpu_packed_matrix){held, true};
    if (transposed && cpu->precision == BM_FP32)
        held = bm_held_packed(&cpu->held, cpu->isa, false, k, n, b);
    if (held != NULL)
        return (bm_cpu_packed_matrix){held, false};
    if (!by_dnn(cpu)) {
        cpu->isa->product->pack(transposed, k, n, b, packed);
        if (cpu->precision == BM_BF16)
            cpu->isa->loops->round_bf16(bm_packed(k, n), packed, packed);
        return (bm_cpu_packed_matrix){packed, false};
    }
    status = round_factor(be, &cpu->factor[1], &all, transposed ? n : k,
                          transposed ? k : n, &halves);
    if (status == BM_OK)
        status = bm_onednn_pack(cpu->dnn, transposed, k, n, halves, packed);
    if (status != BM_OK)
        bm_remember(be, status);
    return (bm_cpu_packed_matrix){packed, false};
}

/* With a packed B oneDNN is fast only if C is contiguous. */
static bm_status multiply_packed_bf16(const bm_cpu *cpu, size_t m, size_t n,
                                      size_t k, const float *a, size_t lda,
                                      float *scratch, const void *packed,
                                      float *c, size_t ldc, bool add)
{
    const bm_loops *loops = cpu->isa->loops;
    uint16_t *halves = (uint16_t *)(void *)(scratch + m * n);
    bm_onednn_product of = {
        .m = m, .n = n, .k = k, .lda = k, .ldc = n, .packed = true};

    for (size_t i = 0; i < m; i++)
        loops->to_bf16(k, a + i * lda, halves + i * k);
    BM_TRY(bm_onednn_multiply(cpu->dnn, &of, halves, packed, scratch));
    for (size_t i = 0; i < m; i++)
        loops->axpby(n, 1, scratch + i * n, add ? 1 : 0, c + i * ldc);
    return BM_OK;
}

bm_status bm_cpu_multiply_packed(const bm_backend *be, size_t m, size_t n,
                                 size_t k, const float *a, size_t lda,
                                 float *scratch, bm_cpu_packed_matrix packed,
                                 float *c, size_t ldc, bool add)
{
    const bm_cpu *cpu = bm_cpu_of(be);

    if (m == 0)
        return BM_OK;
    if (packed.bytes) {
        byte_product of = {cpu->isa->bytes,
                           m,
                           n,
                           k,
                           lda,
                           ldc,
                           1,
                           a,
                           packed.x,
                           c,
                           add,
                           scratch,
                           (uint8_t *)(scratch + m)};

        multiply_bytes(&of, 0, m);
        return BM_OK;
    }
    if (by_dnn(cpu))
        return multiply_packed_bf16(cpu, m, n, k, a, lda, scratch, packed.x, c,
                                    ldc, add);
    if (cpu->precision == BM_BF16) {
        for (size_t i = 0; i < m; i++)
            cpu->isa->loops->round_bf16(k, a + i * lda, scratch + i * k);
        a = scratch;
        lda = k;
    }
    cpu->isa->product->multiply(m, n, k, a, lda, packed.x, c, ldc, add);
    return BM_OK;
}
