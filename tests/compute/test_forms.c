/*
 * A vector that a backend keeps in two forms behaves as one: in bf16 the cuda
 * backend has floats, a bf16 twin or both for any range of its memory. So does
 * one that is moved when the device is full. It also sends lengths through a
 * ring.
 */
#define _DEFAULT_SOURCE /* RTLD_NOLOAD */
#include "core/rng.h"
#include "tests/fakes/emulated.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 96, VECTORS = 3, STEPS = 4000, IDLE = 8 };

static const char *backend = "cpu";

static bm_backend *open_backend(void)
{
    bm_backend *be = NULL;
    assert_ok(bm_backend_open(&be, backend, 0));
    assert_ok(bm_backend_use(be, 1, BM_BF16));
    return be;
}

/* Vectors of integers that are exact in bf16, so that neither form nor rounding
 * has an effect; x: expected. A range of one: n numbers from `at` on. */
typedef struct model {
    bm_backend *be;
    bm_rng rng;
    float *d_x[VECTORS], *d_one; /* [8, 8]: ones on the diagonal */
    float x[VECTORS][N];
} model;

typedef struct part {
    size_t of, at;
    float *d_x, *x;
} part;

static size_t draw(model *m, size_t n)
{
    return (size_t)bm_rng_below(&m->rng, n);
}

static part draw_part(model *m, size_t n)
{
    part p = {.of = draw(m, VECTORS), .at = draw(m, N - n + 1)};

    p.d_x = m->d_x[p.of] + p.at;
    p.x = m->x[p.of] + p.at;
    return p;
}

/* A range of one vector, and one of another. */
static void draw_two(model *m, size_t n, part *a, part *b)
{
    *a = draw_part(m, n);
    do
        *b = draw_part(m, n);
    while (b->of == a->of);
}

static void put_some(model *m, size_t n)
{
    part p = draw_part(m, n);

    for (size_t i = 0; i < n; i++)
        p.x[i] = (float)draw(m, 255) - 127;
    bm_put(m->be, p.d_x, p.x, n);
}

static void get_some(model *m, size_t n)
{
    part p = draw_part(m, n);
    float got[N];

    bm_get(m->be, got, p.d_x, n);
    assert_ok(bm_sync(m->be));
    assert_memory_equal(got, p.x, n * sizeof *got);
}

static void copy_some(model *m, size_t n)
{
    part a, b;

    draw_two(m, n, &a, &b);
    bm_axpby(m->be, n, 1, a.d_x, 0, b.d_x);
    memcpy(b.x, a.x, n * sizeof *a.x);
}

/* In place or not. */
static void activate_some(model *m, size_t n)
{
    part a, b;

    draw_two(m, n, &a, &b);
    if (draw(m, 2))
        b = a;
    bm_activate(m->be, BM_RELU, n, a.d_x, b.d_x);
    for (size_t i = 0; i < n; i++)
        b.x[i] = a.x[i] < 0 ? 0 : a.x[i];
}

static void activate_back_some(model *m, size_t n)
{
    part y, dx;

    draw_two(m, n, &y, &dx);
    bm_activate_back(m->be, BM_RELU, n, y.d_x, dx.d_x, dx.d_x);
    for (size_t i = 0; i < n; i++)
        dx.x[i] = y.x[i] > 0 ? dx.x[i] : 0;
}

static void drop_none(model *m, size_t n)
{
    part a, b;

    draw_two(m, n, &a, &b);
    bm_dropout(m->be, n, 0, 1, a.d_x, b.d_x);
    memcpy(b.x, a.x, n * sizeof *a.x);
}

/* In place or not. */
static void drop_no_weights(model *m, size_t n)
{
    part a, b;

    draw_two(m, n, &a, &b);
    if (draw(m, 2))
        b = a;
    bm_weight_dropout(m->be, n, 0, 1, a.d_x, b.d_x);
    if (b.x != a.x)
        memcpy(b.x, a.x, n * sizeof *a.x);
}

/* Rows of 8, times one. */
static void multiply_some(model *m, size_t n)
{
    size_t rows = (n + 7) / 8;
    part a, b;

    draw_two(m, 8 * rows, &a, &b);
    bm_gemm(m->be, false, false, 1, bm_matrix(a.d_x, rows, 8),
            bm_matrix(m->d_one, 8, 8), 0, bm_matrix(b.d_x, rows, 8));
    memcpy(b.x, a.x, 8 * rows * sizeof *a.x);
}

/* Each second run of 4, or all of them. */
static void copy_runs(model *m, size_t n)
{
    size_t runs = (n + 7) / 8, apart = 4 + 4 * draw(m, 2);
    bm_runs r = {runs, 1, 4, 8, 0, apart, 0};
    part a, b;

    draw_two(m, 8 * runs, &a, &b);
    bm_copy_runs(m->be, &r, a.d_x, b.d_x);
    for (size_t i = 0; i < runs; i++)
        memcpy(b.x + apart * i, a.x + 8 * i, 4 * sizeof *a.x);
}

static void clear_some(model *m, size_t n)
{
    size_t T = (n + 5) / 6;
    int32_t frames[2] = {(int32_t)draw(m, T + 1), (int32_t)draw(m, T + 1)};
    part p = draw_part(m, 6 * T);

    bm_clear_padding(m->be, (bm_extent){T, 2, frames},
                     (bm_tensor){p.d_x, 3, {T, 2, 3, 1}});
    for (size_t i = 0; i < 6 * T; i++)
        p.x[i] = i / 6 < (size_t)frames[i / 3 % 2] ? p.x[i] : 0;
}

/* w <- w - g, for numbers that stay exact. */
static void step_some(model *m, size_t n)
{
    const bm_momentum plain = {.rate = 1};
    float zero[N] = {0}, *d_v = place(m->be, zero, N);
    float *d_skipped = place(m->be, zero, 2);
    part g, w;

    draw_two(m, n, &g, &w);
    for (size_t i = 0; i < n; i++) {
        w.x[i] = (float)draw(m, 100);
        g.x[i] = (float)draw(m, 100);
    }
    bm_put(m->be, w.d_x, w.x, n);
    bm_put(m->be, g.d_x, g.x, n);
    if (draw(m, 2)) /* w may be in bf16 */
        bm_activate(m->be, BM_RELU, n, w.d_x, w.d_x);
    bm_momentum_step(m->be, &plain, n - n / 3, n / 3, g.d_x, d_v, w.d_x,
                     (double *)(void *)d_skipped);
    for (size_t i = 0; i < n; i++)
        w.x[i] -= g.x[i];
    bm_free(m->be, d_v);
    bm_free(m->be, d_skipped);
}

static void test_forms_of_overlapping_ranges_are_one_vector(void **state)
{
    static void (*const steps[])(model *, size_t) = {
        put_some,           get_some,      copy_some,     activate_some,
        activate_back_some, drop_none,     copy_runs,     clear_some,
        step_some,          multiply_some, multiply_some, drop_no_weights,
    };
    model m = {.be = open_backend(), .rng = bm_rng_make(1, "forms", 0)};
    float one[64] = {0};

    (void)state;
    for (size_t i = 0; i < 8; i++)
        one[9 * i] = 1;
    m.d_one = place(m.be, one, 64);
    for (size_t i = 0; i < VECTORS; i++)
        m.d_x[i] = place(m.be, m.x[i], N);
    for (size_t i = 0; i < STEPS; i++)
        steps[draw(&m, sizeof steps / sizeof *steps)](&m, 1 + draw(&m, N));
    for (size_t i = 0; i < VECTORS; i++) {
        float *got = fetch(m.be, m.d_x[i], N);
        assert_memory_equal(got, m.x[i], sizeof m.x[i]);
        free(got);
        bm_free(m.be, m.d_x[i]);
    }
    bm_free(m.be, m.d_one);
    bm_backend_close(m.be);
}

/* x [1] times one, rounded to bf16 as a factor. */
static float through_product(bm_backend *be, float *d_x, float *d_one)
{
    float got, *d_y = place(be, (float[]){0}, 1);

    bm_gemm(be, false, false, 1, bm_matrix(d_x, 1, 1), bm_matrix(d_one, 1, 1),
            0, bm_matrix(d_y, 1, 1));
    bm_get(be, &got, d_y, 1);
    assert_ok(bm_sync(be));
    bm_free(be, d_y);
    return got;
}

/* 1 + 2^-7 is in bf16, 1 + 2^-9 between it and 1. */
static void test_products_do_not_round_the_floats_they_read(void **state)
{
    bm_backend *be = open_backend();
    float x = 1 + 0x1p-9f, one = 1, got = 0;
    float *d_x = place(be, &x, 1), *d_one = place(be, &one, 1);

    (void)state;
    assert_true(through_product(be, d_x, d_one) == 1);
    bm_get(be, &got, d_x, 1);
    assert_ok(bm_sync(be));
    assert_true(got == x);
    bm_free(be, d_x);
    bm_free(be, d_one);
    bm_backend_close(be);
}

/* 256 + 1 - 256 in an output of bf16, where 257 is 256: the sum is rounded when
 * it is complete, however a device splits it. */
static void test_products_sum_in_floats(void **state)
{
    bm_backend *be = open_backend();
    float x[] = {256, 1, -256, 0}, w[4] = {1, 1, 1, 1}, zero = 0, *got = NULL;
    float *d_x = place(be, x, 4), *d_w = place(be, w, 4);
    float *d_b = place(be, &zero, 1), *d_y = place(be, &zero, 1);
    bm_linear l = {.n_in = 4, .n_out = 1, .f = BM_RELU, .w = d_w, .b = d_b};

    (void)state;
    bm_linear_forward(be, &l, 1, d_x, d_y);
    got = fetch(be, d_y, 1);
    assert_true(got[0] == 1);
    free(got);
    bm_free(be, d_x);
    bm_free(be, d_w);
    bm_free(be, d_b);
    bm_free(be, d_y);
    bm_backend_close(be);
}

/* Nor does what has read them change the bits of weights with dropout. */
static void test_weight_dropout_keeps_floats(void **state)
{
    bm_backend *be = open_backend();
    float x = 1 + 0x1p-9f, one = 1, got = 0;
    float *d_x = place(be, &x, 1), *d_one = place(be, &one, 1);
    float *d_y = place(be, &one, 1);

    (void)state;
    assert_true(through_product(be, d_x, d_one) == 1);
    bm_weight_dropout(be, 1, 0, 1, d_x, d_y);
    bm_weight_dropout(be, 1, 0, 1, d_y, d_y);
    bm_get(be, &got, d_y, 1);
    assert_ok(bm_sync(be));
    assert_true(got == x);
    bm_free(be, d_x);
    bm_free(be, d_y);
    bm_free(be, d_one);
    bm_backend_close(be);
}

/* Products of weights after a step, and after a skipped one; a product has read
 * these weights before, or only others. */
static void check_step(bool skipped, bool read)
{
    const bm_momentum plain = {.rate = 1};
    const float old = 2, one = 1, zero[2] = {0};
    float g = skipped ? NAN : -0x1p-7f, expected = skipped ? 1 : 1 + 0x1p-7f;
    bm_backend *be = open_backend();
    float *d_w = place(be, &old, 1), *d_one = place(be, &one, 1);
    float *d_g = place(be, &g, 1), *d_v = place(be, zero, 1);
    float *d_skipped = place(be, zero, 2);

    assert_true(through_product(be, d_w, d_one) == old);
    bm_put(be, d_w, &one, 1);
    if (read)
        assert_true(through_product(be, d_w, d_one) == 1);
    bm_momentum_step(be, &plain, 1, 0, d_g, d_v, d_w,
                     (double *)(void *)d_skipped);
    assert_true(through_product(be, d_w, d_one) == expected);
    bm_free(be, d_w);
    bm_free(be, d_one);
    bm_free(be, d_g);
    bm_free(be, d_v);
    bm_free(be, d_skipped);
    bm_backend_close(be);
}

static void test_products_use_the_weights_of_the_last_step(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        check_step(i & 1, i & 2);
}

static int32_t length(size_t batch, size_t b)
{
    return (int32_t)(bm_rng_at(batch, b) % 2);
}

/* Some 20 MB of lengths, without waiting for the device; sums up the ones that
 * clearing the padding of each batch leaves. */
static void test_lengths_of_many_batches_arrive(void **state)
{
    enum { B = 50000, BATCHES = 100 };
    bm_backend *be = open_backend();
    int32_t *frames = zeros(B, sizeof *frames);
    float *x = zeros(B, sizeof *x), *sum = zeros(B, sizeof *sum), *got = NULL;
    float *d_one = NULL, *d_x = NULL, *d_sum = place(be, sum, B);

    (void)state;
    for (size_t b = 0; b < B; b++)
        x[b] = 1;
    d_one = place(be, x, B);
    d_x = place(be, x, B);
    for (size_t batch = 0; batch < BATCHES; batch++) {
        for (size_t b = 0; b < B; b++) {
            frames[b] = length(batch, b);
            sum[b] += (float)frames[b];
        }
        bm_axpby(be, B, 1, d_one, 0, d_x);
        bm_clear_padding(be, (bm_extent){1, B, frames},
                         (bm_tensor){d_x, 3, {1, B, 1, 1}});
        bm_axpby(be, B, 1, d_x, 1, d_sum);
    }
    got = fetch(be, d_sum, B);
    assert_memory_equal(got, sum, B * sizeof *got);
    bm_free(be, d_one);
    bm_free(be, d_x);
    bm_free(be, d_sum);
    bm_backend_close(be);
    free(frames);
    free(got);
    free(sum);
    free(x);
}

/* Changes a range of an idle vector in one of the ways that the device has. */
static void change_idle(bm_backend *be, bm_rng *rng, float **d_x, float (*x)[N])
{
    size_t i = (size_t)bm_rng_below(rng, IDLE), from = (i + 1) % IDLE;
    size_t n = 1 + (size_t)bm_rng_below(rng, N), got = 0;
    float room[N];

    switch (bm_rng_below(rng, 4)) {
    case 0:
        bm_axpby(be, n, 1, d_x[from], 0, d_x[i]);
        memcpy(x[i], x[from], n * sizeof x[i][0]);
        break;
    case 1:
        bm_axpby(be, n, 1, d_x[from], 1, d_x[i]);
        for (size_t k = 0; k < n; k++)
            x[i][k] += x[from][k];
        break;
    case 2:
        for (size_t k = 0; k < N; k++)
            room[k] = (float)bm_rng_below(rng, 8);
        bm_put(be, d_x[i] + N - n, room, n);
        memcpy(x[i] + N - n, room, n * sizeof room[0]);
        break;
    default:
        bm_get(be, room, d_x[i], N);
        assert_ok(bm_sync(be));
        for (; got < N; got++)
            assert_true(room[got] == x[i][got]);
    }
}

/* From step 20 on the emulated device has room for four of the eight, which are
 * there already; from step 40 on for two. */
static void test_idle_vectors_keep_their_numbers_on_a_full_device(void **state)
{
    float *d_x[IDLE], x[IDLE][N] = {{0}}, *more = NULL;
    bm_backend *be = open_backend();
    size_t *used = emulated_symbol("bm_emulated_used"), before = 0;
    bm_rng rng = bm_rng_make(7, "idle", 0);
    char all[32];

    (void)state;
    for (size_t i = 0; i < IDLE; i++)
        assert_ok(bm_alloc_idle(be, N, &d_x[i]));
    before = used != NULL ? *used : 0;
    for (int step = 0; step < 60; step++) {
        if (step == 20) {
            snprintf(all, sizeof all, "%zu", before + 4 * sizeof x[0]);
            setenv("BMUF_EMULATED_MEMORY", all, 1);
        }
        if (step == 40)
            assert_ok(bm_alloc(be, N + N / 2, &more));
        change_idle(be, &rng, d_x, x);
        assert_true(used == NULL || step < 40 ||
                    *used <= before + 4 * sizeof x[0]);
    }
    for (size_t i = 0; i < IDLE; i++) {
        float *got = fetch(be, d_x[i], N);
        assert_memory_equal(got, x[i], sizeof x[i]);
        free(got);
        bm_free(be, d_x[i]);
    }
    bm_free(be, more);
    unsetenv("BMUF_EMULATED_MEMORY");
    bm_backend_close(be);
}

enum { WIDE = 3 * N };

/* Two queues of one device, one of which runs when it is waited for: copies from
 * and to idle vectors are made in the order in which they were asked for, and
 * these make room for what the other allocates. */
static void test_a_backend_beside_gets_and_gives_vectors(void **state)
{
    float *d_x[IDLE], x[IDLE][N], there[WIDE] = {0}, *wide = NULL, *got = NULL;
    bm_backend *be = NULL, *beside = NULL;
    size_t *used = emulated_symbol("bm_emulated_used");
    bm_rng rng = bm_rng_make(8, "beside", 0);
    char all[32];

    (void)state;
    if (strcmp(backend, "cpu") == 0)
        return;
    be = open_backend();
    assert_ok(bm_backend_open_beside(&beside, be));
    for (size_t i = 0; i < IDLE; i++) {
        assert_ok(bm_alloc_idle(be, N, &d_x[i]));
        for (size_t k = 0; k < N; k++)
            x[i][k] = (float)(i * N + k);
        bm_put(be, d_x[i], x[i], N);
    }
    assert_ok(bm_sync(be));
    if (used != NULL) {
        snprintf(all, sizeof all, "%zu", *used);
        setenv("BMUF_EMULATED_MEMORY", all, 1);
    }
    assert_ok(bm_alloc(beside, WIDE, &wide));
    for (int step = 0; step < 200; step++) {
        size_t i = (size_t)bm_rng_below(&rng, IDLE);
        size_t at = (size_t)bm_rng_below(&rng, WIDE - N + 1);

        if (step % 2 == 0) {
            bm_copy_between(beside, wide + at, be, d_x[i], N);
            memcpy(there + at, x[i], sizeof x[i]);
            bm_axpby(beside, N, 0.5f, wide + at, 0, wide + at);
            bm_axpby(be, N, 0.75f, d_x[i], 0, d_x[i]);
            for (size_t k = 0; k < N; k++) {
                there[at + k] *= 0.5f;
                x[i][k] *= 0.75f;
            }
        } else {
            bm_copy_between(be, d_x[i], beside, wide + at, N);
            memcpy(x[i], there + at, sizeof x[i]);
            bm_axpby(be, N, 1.5f, d_x[i], 0, d_x[i]);
            for (size_t k = 0; k < N; k++)
                x[i][k] *= 1.5f;
        }
        if (step % 3 == 0) /* it overtakes the other */
            assert_ok(bm_sync(be));
    }
    got = fetch(beside, wide, WIDE);
    assert_memory_equal(got, there, sizeof there);
    free(got);
    for (size_t i = 0; i < IDLE; i++) {
        got = fetch(be, d_x[i], N);
        assert_memory_equal(got, x[i], sizeof x[i]);
        free(got);
        bm_free(be, d_x[i]);
    }
    unsetenv("BMUF_EMULATED_MEMORY");
    bm_free(beside, wide);
    bm_backend_close(beside);
    bm_backend_close(be);
}

static void test_what_fails_on_one_of_two_fails_on_both(void **state)
{
    bm_backend *be = NULL, *beside = NULL;
    float *x = NULL, *y = NULL;

    (void)state;
    if (strcmp(backend, "cpu") == 0)
        return;
    be = open_backend();
    assert_ok(bm_backend_open_beside(&beside, be));
    assert_ok(bm_alloc(be, N, &x));
    assert_ok(bm_alloc(beside, N, &y));
    for (int back = 0; back < 2; back++) {
        bm_remember(back ? beside : be, BM_FAIL(BM_ERR_DEVICE, "it broke"));
        bm_copy_between(beside, y, be, x, N);
        assert_int_equal(bm_sync(beside), BM_ERR_DEVICE);
        assert_int_equal(bm_sync(be), BM_ERR_DEVICE);
        bm_copy_between(be, x, beside, y, N);
        assert_ok(bm_sync(be));
        assert_ok(bm_sync(beside));
    }
    bm_free(be, x);
    bm_free(beside, y);
    bm_backend_close(beside);
    bm_backend_close(be);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms_of_overlapping_ranges_are_one_vector),
        cmocka_unit_test(test_products_do_not_round_the_floats_they_read),
        cmocka_unit_test(test_products_sum_in_floats),
        cmocka_unit_test(test_weight_dropout_keeps_floats),
        cmocka_unit_test(test_products_use_the_weights_of_the_last_step),
        cmocka_unit_test(test_lengths_of_many_batches_arrive),
        cmocka_unit_test(test_idle_vectors_keep_their_numbers_on_a_full_device),
        cmocka_unit_test(test_a_backend_beside_gets_and_gives_vectors),
        cmocka_unit_test(test_what_fails_on_one_of_two_fails_on_both),
    };

    if (argc > 1)
        backend = argv[1];
    if (!have_backend(backend))
        return SKIPPED;
    return RUN_GROUP("forms", tests);
}
