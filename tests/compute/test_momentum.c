/* Momentum SGD: statistics, and gradients that are not finite.
 * test_operations.c compares the update with its equations. */
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 5003 };

static void fill(float *x, size_t n, double seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)sin(seed + 1.7 * (double)i);
}

static void read_back(float *host, const float *x, size_t n)
{
    bm_get(chosen, host, x, n);
    assert_ok(bm_sync(chosen));
}

static void test_statistics_have_no_velocity(void **state)
{
    enum { learned = 5, n = 8 };
    const bm_momentum m = {0.5f, 0.5f, 0, 0, false};
    const float one[n] = {1, 1, 1, 1, 1, 1, 1, 1}, zero[2] = {0};
    float *d_g = place(chosen, one, n), *d_v = place(chosen, one, n);
    float *d_w = place(chosen, one, n), *d_skipped = place(chosen, zero, 2);
    float v[n], w[n];

    (void)state;
    bm_momentum_step(chosen, &m, learned, n - learned, d_g, d_v, d_w,
                     (double *)(void *)d_skipped);
    bm_get(chosen, v, d_v, n);
    read_back(w, d_w, n);
    for (int i = 0; i < n; i++) {
        assert_true(v[i] == (i < learned ? 0 : 1));
        assert_true(w[i] == (i < learned ? 1 : 0));
    }
    bm_free(chosen, d_g);
    bm_free(chosen, d_v);
    bm_free(chosen, d_w);
    bm_free(chosen, d_skipped);
}

static void test_gradient_that_is_not_finite_is_skipped(void **state)
{
    const float bad[] = {NAN, INFINITY, -INFINITY};
    const bm_momentum m = {0.1f, 0.9f, 0.1f, 1, true};
    float g[N], x[N], got[N], raw[2];
    float *d_g = NULL, *d_v = NULL, *d_w = NULL, *d_skipped = NULL;
    double skipped = 0;

    (void)state;
    fill(g, N, 16);
    fill(x, N, 17);
    d_g = place(chosen, g, N);
    d_v = place(chosen, x, N);
    d_w = place(chosen, x, N);
    assert_ok(bm_alloc(chosen, 2, &d_skipped));
    FOR_EACH (i, bad) {
        g[N - 1 - 300 * i] = bad[i];
        bm_put(chosen, d_g, g, N);
        bm_momentum_step(chosen, &m, N, 0, d_g, d_v, d_w,
                         (double *)(void *)d_skipped);
        read_back(got, d_w, N);
        assert_memory_equal(got, x, sizeof x);
        read_back(got, d_v, N);
        assert_memory_equal(got, x, sizeof x);
    }
    read_back(raw, d_skipped, 2);
    memcpy(&skipped, raw, sizeof skipped);
    assert_true(skipped == 3);
    bm_free(chosen, d_g);
    bm_free(chosen, d_v);
    bm_free(chosen, d_w);
    bm_free(chosen, d_skipped);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statistics_have_no_velocity),
        cmocka_unit_test(test_gradient_that_is_not_finite_is_skipped),
    };

    return RUN_GROUP_ON(argc, argv, "momentum", tests);
}
