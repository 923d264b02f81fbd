/* cpu.c - the reference backend: loops on a few threads, and libraries for
 * products. Work is done when an operation returns. */
#include "compute/cpu/cpu.h"
#include "compute/cpu/libraries/blas.h"

#include "core/log.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void cpu_close(bm_backend *be)
{
    bm_cpu *cpu = be->self;

    if (cpu == NULL)
        return;
    bm_thread_pool_close(cpu->pool);
    bm_onednn_close(cpu->dnn);
    bm_held_clear(&cpu->held);
    free(cpu->factor[0].x);
    free(cpu->factor[1].x);
    free(cpu->work.x);
    free(cpu->squares.x);
    free(cpu->scores.x);
    free(cpu);
    be->self = NULL;
}

static bm_status cpu_use(bm_backend *be, size_t threads, bm_precision precision)
{
    bm_cpu *cpu = be->self;
    bm_thread_pool *pool = NULL;

    if (precision == BM_TF32)
        return BM_FAIL(BM_ERR_CONFIG, "precision tf32 is not available on the "
                                      "CPU; use fp32 or bf16");
    if (precision == BM_BF16)
        BM_TRY(bm_bf16_choose(&cpu->bf16));
    if (precision == BM_BF16 && cpu->bf16 == BM_BF16_OF_DNN && cpu->dnn == NULL)
        BM_TRY(bm_onednn_open(&cpu->dnn));
    BM_TRY(bm_thread_pool_open(&pool, threads));
    bm_thread_pool_close(cpu->pool);
    cpu->pool = pool;
    cpu->precision = precision;
    if (precision == BM_BF16 && cpu->bf16 == BM_BF16_OF_FP32)
        bm_log(BM_NOTE, "precision bf16: on this processor factors are rounded "
                        "to bf16 and multiplied in fp32, at the speed of fp32");
    return BM_OK;
}

static bm_status cpu_open(bm_backend *be, int index)
{
    bm_cpu *cpu = NULL;
    bm_status status = BM_OK;

    (void)index;
    BM_TRY(bm_blas_reserve());
    cpu = be->self = calloc(1, sizeof *cpu);
    if (cpu == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the cpu backend");
    openblas_set_num_threads(1);
    BM_TRY_DONE(bm_isa_find(&cpu->isa));
    BM_TRY_DONE(cpu_use(be, 1, BM_FP32));
done:
    if (status != BM_OK)
        cpu_close(be);
    return status;
}

bm_status bm_reserve(bm_scratch *s, size_t bytes)
{
    enum { LINE = 64 };
    size_t whole = bytes / LINE * LINE + LINE;

    if (bytes <= s->bytes)
        return BM_OK;
    free(s->x);
    s->bytes = 0;
    s->x = aligned_alloc(LINE, whole);
    if (s->x == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu bytes", whole);
    s->bytes = whole;
    return BM_OK;
}

static void cpu_sync(bm_backend *be)
{
    (void)be;
}

/* Whole cache lines: the loops are faster on aligned vectors. */
static bm_status cpu_alloc(bm_backend *be, size_t n, float **out)
{
    enum { LINE = 64 };
    size_t bytes = n * sizeof(float) / LINE * LINE + LINE;
    float *x = aligned_alloc(LINE, bytes);

    (void)be;
    if (x == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu floats", n);
    memset(x, 0, bytes);
    *out = x;
    return BM_OK;
}

static void cpu_free(bm_backend *be, float *x)
{
    bm_held *held = &bm_cpu_of(be)->held;

    if (held->x == x)
        bm_held_clear(held);
    free(x);
}

static void cpu_hold(bm_backend *be, const float *x, size_t n, bool bytes)
{
    bm_held *held = &bm_cpu_of(be)->held;

    bm_held_clear(held);
    *held = (bm_held){.x = x, .n = n, .bytes = bytes};
}

static void cpu_copy(bm_backend *be, float *dst, const float *src, size_t n)
{
    (void)be;
    memcpy(dst, src, n * sizeof *dst);
}

/* ---- elementwise loops, in parts ---------------------------------------- */

/* The arguments of a loop over n floats, in `parts` parts. */
typedef struct span {
    const bm_loops *loops;
    size_t n, parts;
    float a, b;
    const float *x, *z;
    float *y;
    bm_activation f;
    uint64_t key;
    const bm_momentum *momentum;
    const bm_adam_factors *adam;
    float *m, *v;
    double *sums;
} span;

enum { GRAIN = 1 << 14 }; /* floats: fewer are not worth a second thread */

static void run(bm_backend *be, span *s, size_t n,
                void (*part)(void *self, size_t i))
{
    size_t most = (n + GRAIN - 1) / GRAIN;
    size_t threads = bm_thread_pool_threads(bm_cpu_of(be)->pool);

    s->loops = bm_cpu_isa(be)->loops;
    s->n = n;
    s->parts = most < threads ? most : threads;
    bm_cpu_run(be, s->parts, part, s);
}

static size_t begin(const span *s, size_t i)
{
    return bm_part(s->n, GRAIN, s->parts, i);
}

static void axpby_part(void *self, size_t i)
{
    const span *s = self;
    size_t at = begin(s, i);
    s->loops->axpby(begin(s, i + 1) - at, s->a, s->x + at, s->b, s->y + at);
}

void bm_cpu_axpby(bm_backend *be, size_t n, float a, const float *x, float b,
                  float *y)
{
    span s = {.a = a, .x = x, .b = b, .y = y};
    run(be, &s, n, axpby_part);
}

static void activate_part(void *self, size_t i)
{
    const span *s = self;
    size_t at = begin(s, i);
    s->loops->activate(s->f, begin(s, i + 1) - at, s->x + at, s->y + at);
}

void bm_cpu_activate(bm_backend *be, bm_activation f, size_t n, const float *x,
                     float *y)
{
    span s = {.f = f, .x = x, .y = y};
    run(be, &s, n, activate_part);
}

static void activate_back_part(void *self, size_t i)
{
    const span *s = self;
    size_t at = begin(s, i);
    s->loops->activate_back(s->f, begin(s, i + 1) - at, s->x + at, s->z + at,
                            s->y + at);
}

void bm_cpu_activate_back(bm_backend *be, bm_activation f, size_t n,
                          const float *y, const float *dy, float *dx)
{
    span s = {.f = f, .x = y, .z = dy, .y = dx};
    run(be, &s, n, activate_back_part);
}

static void dropout_part(void *self, size_t i)
{
    const span *s = self;
    size_t at = begin(s, i);
    s->loops->dropout(begin(s, i + 1) - at, s->a, s->key, at, s->x + at,
                      s->y + at);
}

void bm_cpu_dropout(bm_backend *be, size_t n, float p, uint64_t key,
                    const float *x, float *y)
{
    span s = {.a = p, .key = key, .x = x, .y = y};
    run(be, &s, n, dropout_part);
}

void bm_cpu_weight_dropout(bm_backend *be, size_t n, float p, uint64_t key,
                           const float *x, float *y)
{
    bm_cpu_dropout(be, n, p, key, x, y);
}

static void squares_part(void *self, size_t i)
{
    const span *s = self;
    size_t to = begin(s, i + 1);

    for (size_t at = begin(s, i); at < to; at += GRAIN)
        s->sums[at / GRAIN] =
            s->loops->squares(to - at < GRAIN ? to - at : GRAIN, s->x + at);
}

/* The square of the norm of x, summed by grains: the same bits for any number
 * of threads. */
static bm_status squares(bm_backend *be, size_t n, const float *x, double *out)
{
    bm_cpu *cpu = bm_cpu_of(be);
    size_t grains = (n + GRAIN - 1) / GRAIN;
    span s = {.x = x};

    BM_TRY(bm_reserve(&cpu->squares, grains * sizeof(double)));
    s.sums = cpu->squares.x;
    run(be, &s, n, squares_part);
    *out = 0;
    for (size_t i = 0; i < grains; i++)
        *out += s.sums[i];
    return BM_OK;
}

/* |g|, or NaN if one of the statistics behind g is not finite. */
static bm_status norm_of(bm_backend *be, size_t n, size_t statistics,
                         const float *g, double *out)
{
    double norm = 0;

    BM_TRY(squares(be, n, g, &norm));
    norm = sqrt(norm);
    if (!isfinite(bm_cpu_isa(be)->loops->squares(statistics, g + n)))
        norm = NAN;
    *out = norm;
    return BM_OK;
}

static void momentum_part(void *self, size_t i)
{
    const span *s = self;
    size_t at = begin(s, i);
    s->loops->momentum(s->momentum, s->a, begin(s, i + 1) - at, s->x + at,
                       s->v + at, s->y + at);
}

void bm_cpu_momentum_step(bm_backend *be, const bm_momentum *m, size_t n,
                          size_t statistics, float *g, float *v, float *w,
                          double *skipped)
{
    double norm = 0;
    bm_status status = norm_of(be, n, statistics, g, &norm);
    span s = {.momentum = m, .x = g, .v = v, .y = w, .a = 1};

    if (status != BM_OK) {
        bm_remember(be, status);
        return;
    }
    if (!isfinite(norm)) {
        *skipped += 1;
        return;
    }
    if (m->clip > 0 && norm > m->clip)
        s.a = (float)(m->clip / norm);
    run(be, &s, n, momentum_part);
    bm_cpu_axpby(be, statistics, -1, g + n, 1, w + n);
}

static void adam_part(void *self, size_t i)
{
    const span *s = self;
    size_t at = begin(s, i);
    s->loops->adam(s->adam, begin(s, i + 1) - at, s->x + at, s->m + at,
                   s->v + at, s->y + at);
}

static bm_adam_factors factors_of(const bm_adam *a, double scale, double t)
{
    return (bm_adam_factors){
        .scale = (float)scale,
        .old1 = (float)a->beta1,
        .new1 = (float)(1 - a->beta1),
        .old2 = (float)a->beta2,
        .new2 = (float)(1 - a->beta2),
        .keep = (float)(1 - a->rate * a->decay),
        .by = (float)(a->rate / (1 - pow(a->beta1, t))),
        .root = (float)(1 / sqrt(1 - pow(a->beta2, t))),
        .epsilon = (float)a->epsilon,
        .rms = a->rms,
        .decay = (float)a->decay,
        .rate = (float)a->rate,
    };
}

void bm_cpu_adam_step(bm_backend *be, const bm_adam *a, size_t n,
                      size_t statistics, float *g, float *m, float *v, float *w,
                      float *t, double *skipped)
{
    double norm = 0, scale = 1;
    bm_status status = norm_of(be, n, statistics, g, &norm);
    bm_adam_factors factors;
    span s = {.adam = &factors, .x = g, .m = m, .v = v, .y = w};

    if (status != BM_OK) {
        bm_remember(be, status);
        return;
    }
    if (a->clip > 0 && norm > a->clip)
        scale = a->clip / norm;
    if (!(scale * norm <= BM_ADAM_MOST)) {
        *skipped += 1;
        return;
    }
    *t += 1;
    factors = factors_of(a, scale, *t);
    run(be, &s, n, adam_part);
    bm_cpu_axpby(be, statistics, -1, g + n, 1, w + n);
}

void bm_cpu_unit(bm_backend *be, size_t n, const float *x, float *y)
{
    double norm = 0;
    bm_status status = squares(be, n, x, &norm);
    bool good = norm > 0 && isfinite(norm);

    if (status != BM_OK)
        bm_remember(be, status);
    else
        bm_cpu_axpby(be, n, good ? (float)(1 / sqrt(norm)) : 0, x, 0, y);
}

/* ---- matrices ----------------------------------------------------------- */

void bm_cpu_gemm(bm_backend *be, bool trans_a, bool trans_b, float alpha,
                 bm_tensor a, bm_tensor b, float beta, bm_tensor c)
{
    bm_cpu_multiply(
        be, c.dim[0], c.dim[1], a.dim[trans_a ? 0 : 1], alpha,
        (bm_factor){.x = a.data, .ld = a.dim[1], .transposed = trans_a},
        (bm_factor){.x = b.data, .ld = b.dim[1], .transposed = trans_b}, beta,
        c.data, c.dim[1]);
}

/* Threads take whole rows, which are short. */
typedef struct rows {
    const bm_loops *loops;
    bm_tensor y;
    const float *b;
    float *sum;
    size_t parts;
} rows;

static rows rows_of(bm_backend *be, bm_tensor y)
{
    size_t threads = bm_thread_pool_threads(bm_cpu_of(be)->pool);

    return (rows){.loops = bm_cpu_isa(be)->loops,
                  .y = y,
                  .parts = bm_count(y) > GRAIN ? threads : 1};
}

static void add_rows_part(void *self, size_t i)
{
    const rows *r = self;
    size_t to = bm_part(r->y.dim[0], 1, r->parts, i + 1), n = r->y.dim[1];

    for (size_t k = bm_part(r->y.dim[0], 1, r->parts, i); k < to; k++)
        r->loops->axpby(n, 1, r->b, 1, r->y.data + k * n);
}

void bm_cpu_add_rows(bm_backend *be, bm_tensor y, const float *b)
{
    rows r = rows_of(be, y);

    r.b = b;
    bm_cpu_run(be, r.parts, add_rows_part, &r);
}

/* Some columns of all rows: the same bits for any number of threads. */
static void sum_rows_part(void *self, size_t i)
{
    enum { LINE = 64 / sizeof(float) };
    const rows *r = self;
    size_t n = r->y.dim[1], from = bm_part(n, LINE, r->parts, i);
    size_t count = bm_part(n, LINE, r->parts, i + 1) - from;

    r->loops->axpby(count, 0, r->sum + from, 0, r->sum + from);
    r->loops->add_rows(r->y.dim[0], count, n, r->y.data + from, r->sum + from);
}

void bm_cpu_sum_rows(bm_backend *be, bm_tensor y, float *b)
{
    rows r = rows_of(be, y);

    r.sum = b;
    bm_cpu_run(be, r.parts, sum_rows_part, &r);
}

void bm_cpu_clear_padding(bm_backend *be, bm_extent e, bm_tensor x)
{
    size_t D = x.dim[2];

    (void)be;
    for (size_t t = 0; t < e.T; t++)
        for (size_t b = 0; b < e.B; b++)
            if ((size_t)e.frames[b] <= t)
                memset(x.data + (t * e.B + b) * D, 0, D * sizeof *x.data);
}

void bm_cpu_copy_runs(bm_backend *be, const bm_runs *r, const float *x,
                      float *y)
{
    (void)be;
    for (size_t i = 0; i < r->outer; i++)
        for (size_t j = 0; j < r->inner; j++)
            memcpy(y + i * r->outer_y + j * r->inner_y,
                   x + i * r->outer_x + j * r->inner_x, r->n * sizeof *y);
}

const bm_backend_ops bm_backend_cpu = {
    .name = "cpu",
    .on_host = true,
    .open = cpu_open,
    .close = cpu_close,
    .use = cpu_use,
    .sync = cpu_sync,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .hold = cpu_hold,
    .put = cpu_copy,
    .get = cpu_copy,
#define BM_OPERATION(name, ...) .name = bm_cpu_##name,
#define BM_SIZE_OPERATION       BM_OPERATION
#define BM_DEVICE_OPERATION(...)
#include "compute/operations.h"
};
