/*
 * Operations of exchanges take subnormal numbers as zero, as the program does
 * on the host: the same bits, on a device that computes with such numbers.
 */
#include "bmuf/filter.h"
#include "bmuf/filter_loops.h"
#include "comm/sum/sum_loops.h"
#include "compute/cpu/subnormals.h"
#include "core/rng.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 2000, VECTORS = 4 };

static float given[VECTORS][N];
static bm_backend *be;

/* Of both signs, from the smallest subnormal number to 2^-100, and zeros. */
static int open(void **state)
{
    (void)state;
    for (size_t k = 0; k < VECTORS; k++)
        for (size_t i = 0; i < N; i++) {
            uint64_t r = bm_rng_at(k + 1, i);
            double size = exp2(-149 + (double)(r >> 40) * 0x1p-24 * 50);

            given[k][i] = r % 7 == 0 ? 0 : (float)(r & 8 ? size : -size);
        }
    assert_ok(bm_backend_open(&be, "cuda", 0));
    bm_subnormals_to_zero(); /* from here on, on the host */
    return 0;
}

static int close(void **state)
{
    (void)state;
    bm_backend_close(be);
    return 0;
}

static void assert_same(float *d_x, const float *expected)
{
    float *got = fetch(be, d_x, N);

    for (size_t i = 0; i < N; i++)
        assert_memory_equal(&got[i], &expected[i], sizeof *got);
    free(got);
    bm_free(be, d_x);
}

static void test_differences(void **state)
{
    float y[N], *d_y = place(be, given[2], N), *d_odd = place(be, y, 1);
    float *d_a = place(be, given[0], N), *d_b = place(be, given[1], N);

    (void)state;
    bm_difference(be, N, d_a, d_b, d_y, d_odd);
    assert_true(bm_filter_loops_here()->subtract(N, given[0], given[1], y));
    assert_same(d_y, y);
    bm_free(be, d_a);
    bm_free(be, d_b);
    bm_free(be, d_odd);
}

static const bm_sum_loops *const sum_loops[] = {
#define X(isa) &bm_sum_loops_##isa,
    BM_ISAS(X)
#undef X
};

/* Also what is subnormal when rounded to 24 bits, but not when rounded to the
 * bits that a subnormal number has. */
static void test_blends(void **state)
{
    static const double factors[][2] = {{0.5, 0.5},
                                        {0.3, 0.7},
                                        {0, 1},
                                        {0, 0.3},
                                        {1, 0x1p-20},
                                        {0x1p-30, 1 - 0x1.8p-25},
                                        {0x1p-30, 1 - 0x1p-25},
                                        {0x1p-30, 1 - 0x1p-24}};

    (void)state;
    FOR_EACH (k, factors) {
        double a = factors[k][0], b = factors[k][1];
        float x[N], y[N], *d_x = NULL, *d_y = NULL;

        memcpy(x, given[0], sizeof x);
        memcpy(y, given[1], sizeof y);
        for (size_t i = 0; i < 8; i++) {
            x[i] = i % 2 ? 0x1p-126F : -0x1p-126F;
            y[i] = 0;
        }
        d_x = place(be, x, N);
        d_y = place(be, y, N);
        bm_blend(be, N, a, d_y, b, d_x);
        if (a != 0)
            sum_loops[0]->blend(N, a, y, b, x);
        for (size_t i = 0; i < N && a == 0; i++) /* y is not read */
            y[i] = (float)(b * x[i]);
        assert_same(d_y, y);
        bm_free(be, d_x);
    }
}

static void test_the_filter(void **state)
{
    bm_filter f = {.momentum = 0.75, .rate = 1.25, .nesterov = true};
    bm_filter_step s = {.eta = 0.75, .zeta = 1.25, .ahead = 0.75};
    float model[N], delta[N], y[N];
    size_t chunks = (N + BM_FILTER_CHUNK - 1) / BM_FILTER_CHUNK;
    float *d_g = place(be, given[0], N), *d_y = place(be, given[3], N);
    float *d_products = NULL;

    (void)state;
    assert_ok(bm_alloc(be, 6 * chunks, &d_products));
    memcpy(model, given[1], sizeof model);
    memcpy(delta, given[2], sizeof delta);
    s.n_learned = N;
    s.model = place(be, model, N);
    s.delta = place(be, delta, N);
    bm_filter_slice(be, &s, N, d_g, d_y, (double *)(void *)d_products);
    bm_filter_block(&f, N, given[0], model, delta, y);
    assert_same(d_y, y);
    assert_same(s.model, model);
    assert_same(s.delta, delta);

    d_y = place(be, given[3], N); /* without a model: y += g */
    memcpy(y, given[3], sizeof y);
    s.model = s.delta = NULL;
    bm_filter_slice(be, &s, N, d_g, d_y, (double *)(void *)d_products);
    assert_true(sum_loops[0]->add(N, given[0], y));
    assert_same(d_y, y);
    bm_free(be, d_g);
    bm_free(be, d_products);
}

/* As slices of the host are scaled in exchange_host.c. */
static void test_scaled_slices(void **state)
{
    const float factor = 0.3F;
    float x[N], *d_x = place(be, given[0], N);

    (void)state;
    bm_axpby(be, N, factor, d_x, 0, d_x);
    for (size_t i = 0; i < N; i++)
        x[i] = given[0][i] * factor;
    assert_same(d_x, x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_blends),
        cmocka_unit_test(test_the_filter),
        cmocka_unit_test(test_scaled_slices),
    };

    if (!have_backend("cuda"))
        return SKIPPED;
    return cmocka_run_group_tests_name("flush", tests, open, close);
}
