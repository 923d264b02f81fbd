#include "tests/support/reference/operation_rig.h"

#include "core/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const sets[] = {"baseline", "avx2", "avx512"};
static const bm_precision precisions[] = {BM_FP32, BM_BF16, BM_TF32};

static array *add(trial *t, role as, bool wide, size_t n)
{
    array *a = &t->arrays[t->n_arrays];

    assert_true(t->n_arrays < MOST_ARRAYS);
    t->n_arrays++;
    *a = (array){as, wide, n, zeros(n, sizeof *a->x)};
    return a;
}

array *zeroed(trial *t, role as, bool wide, size_t n)
{
    return add(t, as, wide, n);
}

array *output(trial *t, size_t n)
{
    array *a = add(t, OUTPUT, false, n);

    for (size_t i = 0; i < n; i++)
        a->x[i] = NAN;
    return a;
}

array *drawn(trial *t, role as, size_t n)
{
    bm_rng rng = bm_rng_make(n, "test", t->n_arrays);
    array *a = add(t, as, false, n);

    for (size_t i = 0; i < n; i++) {
        double size = (double)(8 + bm_rng_below(&rng, 120)) / 64;

        a->x[i] = bm_rng_below(&rng, 2) == 0 ? size : -size;
    }
    return a;
}

void draw_frames(trial *t, size_t T, size_t B, bm_window time)
{
    bm_rng rng = bm_rng_make(T, "test", B);

    assert_true(B <= MOST_B);
    for (size_t b = 0; b < B; b++) {
        size_t n = b < 3 ? (size_t[]){T, 0, 1}[b] : bm_rng_below(&rng, T + 1);

        t->in_frames[b] = (int32_t)n;
        t->out_frames[b] = (int32_t)bm_windows(time, n);
    }
    t->in = (bm_extent){T, B, t->in_frames};
    t->out = (bm_extent){bm_windows(time, T), B, t->out_frames};
}

void set_padding(const bm_extent *e, array *a, size_t size, double value)
{
    for (size_t i = 0; i < a->n; i++)
        if (!inside(e, i, size))
            a->x[i] = value;
}

float *scratch(bm_backend *be, trial *t, size_t n)
{
    float *host = zeros(n, sizeof *host), *x = NULL;

    assert_true(t->n_scratch < sizeof t->scratch / sizeof t->scratch[0]);
    for (size_t i = 0; i < n; i++)
        host[i] = NAN;
    x = t->scratch[t->n_scratch++] = place(be, host, n);
    free(host);
    return x;
}

/* ---- expected numbers ---------------------------------------------------- */

typedef double *numbers[MOST_ARRAYS];

static void copy_arrays(const trial *t, numbers out)
{
    for (size_t k = 0; k < t->n_arrays; k++)
        memcpy(out[k], t->arrays[k].x, t->arrays[k].n * sizeof *out[k]);
}

static void new_numbers(const trial *t, numbers out)
{
    for (size_t k = 0; k < t->n_arrays; k++)
        out[k] = zeros(t->arrays[k].n, sizeof *out[k]);
}

static void free_numbers(const trial *t, numbers x)
{
    for (size_t k = 0; k < t->n_arrays; k++)
        free(x[k]);
}

/* The sum of dy y, with a number of one array moved. */
static double moved_sum(const subject *s, const trial *t, numbers x, int of,
                        size_t i, double by)
{
    const double *dy = t->arrays[s->dy].x;
    double sum = 0;

    copy_arrays(t, x);
    x[of][i] += by;
    s->reference(t, x);
    for (size_t k = 0; k < t->arrays[s->y].n; k++)
        sum += isnan(dy[k]) ? 0 : dy[k] * x[s->y][k];
    return sum;
}

static void differentiate(const subject *s, const trial *t, numbers expected)
{
    const double h = 1e-5;
    numbers x;

    new_numbers(t, x);
    for (const gradient *g = s->gradients; g->in != 0; g++)
        for (size_t i = 0; i < t->arrays[g->of].n; i++)
            expected[g->in][i] = (moved_sum(s, t, x, g->of, i, h) -
                                  moved_sum(s, t, x, g->of, i, -h)) /
                                 (2 * h);
    free_numbers(t, x);
}

/* ---- a backend's numbers ------------------------------------------------- */

static size_t floats_of(const array *a)
{
    return a->wide ? 2 * a->n : a->n;
}

static float *place_array(bm_backend *be, const array *a)
{
    float *host = zeros(floats_of(a), sizeof *host), *x = NULL;

    if (a->wide)
        memcpy(host, a->x, a->n * sizeof *a->x);
    for (size_t i = 0; !a->wide && i < a->n; i++)
        host[i] = (float)a->x[i];
    x = place(be, host, floats_of(a));
    free(host);
    return x;
}

static double number_at(const array *a, const float *host, size_t i)
{
    double wide = 0;

    if (!a->wide)
        return host[i];
    memcpy(&wide, host + 2 * i, sizeof wide);
    return wide;
}

static void check_array(const subject *s, const array *a, const float *got,
                        const double *expected, bm_precision precision)
{
    double off = 0, norm = 0;
    size_t compared = 0;

    for (size_t i = 0; i < a->n; i++) {
        double x = number_at(a, got, i);

        if (a->role == INPUT) {
            assert_true(x == a->x[i] || (isnan(x) && isnan(a->x[i])));
            continue;
        }
        if (isnan(expected[i]))
            continue;
        compared++;
        assert_true(isfinite(x));
        if (precision == BM_FP32 && !near(x, expected[i], s->fp32))
            fail_msg("%s: number %zu of %zu is %.9g, not %.9g", s->operations,
                     i, a->n, x, expected[i]);
        off += (x - expected[i]) * (x - expected[i]);
        norm += expected[i] * expected[i];
    }
    assert_true(a->role == INPUT || compared > 0);
    if (!(sqrt(off) <= s->rounded * sqrt(norm) + s->fp32))
        fail_msg("%s: %zu numbers are off by %.3g of %.3g", s->operations, a->n,
                 sqrt(off), sqrt(norm));
}

static void run_once(const subject *s, trial *t, bm_backend *be,
                     float *got[MOST_ARRAYS])
{
    float *x[MOST_ARRAYS] = {NULL};

    for (size_t k = 0; k < t->n_arrays; k++)
        x[k] = place_array(be, &t->arrays[k]);
    t->n_scratch = 0;
    s->queue(be, t, x);
    assert_ok(bm_sync(be));
    for (size_t k = 0; k < t->n_arrays; k++) {
        got[k] = fetch(be, x[k], floats_of(&t->arrays[k]));
        bm_free(be, x[k]);
    }
    for (size_t k = 0; k < t->n_scratch; k++)
        bm_free(be, t->scratch[k]);
}

/* Twice: the bits are the same. */
static void run_on(const subject *s, trial *t, bm_backend *be,
                   bm_precision precision, numbers expected)
{
    float *got[MOST_ARRAYS] = {NULL}, *again[MOST_ARRAYS] = {NULL};

    run_once(s, t, be, got);
    run_once(s, t, be, again);
    for (size_t k = 0; k < t->n_arrays; k++) {
        const array *a = &t->arrays[k];

        assert_memory_equal(got[k], again[k], floats_of(a) * sizeof **got);
        if (a->role != CONSUMED)
            check_array(s, a, got[k], expected[k], precision);
        free(got[k]);
        free(again[k]);
    }
}

/* Every precision that the backend has. */
static void run_precisions(const subject *s, trial *t, bm_backend *be,
                           size_t threads, numbers expected)
{
    FOR_EACH (p, precisions)
        if (bm_backend_use(be, threads, precisions[p]) == BM_OK)
            run_on(s, t, be, precisions[p], expected);
        else
            assert_int_not_equal(precisions[p], BM_FP32);
}

/* The CPU with every instruction set of this machine. */
static void run_sets(const subject *s, trial *t, numbers expected)
{
    FOR_EACH (i, sets) {
        bm_backend *be = NULL;

        setenv("BMUF_ISA", sets[i], 1);
        if (bm_backend_open(&be, "cpu", 0) != BM_OK) {
            assert_true(i > 0); /* every machine runs the first */
            continue;
        }
        run_precisions(s, t, be, 1, expected);
        run_precisions(s, t, be, 3, expected);
        bm_backend_close(be);
    }
    unsetenv("BMUF_ISA");
}

static void check_shape(const subject *s, const size_t *shape,
                        bm_backend *device)
{
    trial t = {.shape = shape};
    numbers expected;

    s->make(&t);
    new_numbers(&t, expected);
    copy_arrays(&t, expected);
    s->reference(&t, expected);
    differentiate(s, &t, expected);
    if (device != NULL)
        run_precisions(s, &t, device, 1, expected);
    else if (!s->on_devices)
        run_sets(s, &t, expected);
    free_numbers(&t, expected);
    for (size_t k = 0; k < t.n_arrays; k++)
        free(t.arrays[k].x);
}

void check_subject(const subject *s, bm_backend *device)
{
    size_t n = sizeof s->shapes / sizeof s->shapes[0];

    assert_true(s->shapes[0][0] > 0);
    for (size_t k = 0; k < n && s->shapes[k][0] > 0; k++)
        check_shape(s, s->shapes[k], device);
}
