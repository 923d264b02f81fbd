/* One operation of momentum SGD on every backend of this build, against its
 * equations in double precision. */
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

/* A copy of n floats in memory that begins `off` floats before. */
static float *place_at(size_t off, const float *host, size_t n)
{
    float *x = NULL;

    assert_ok(bm_alloc(chosen, off + n, &x));
    bm_put(chosen, x + off, host, n);
    return x;
}

/* The update of sgd/sgd.h in double, with |g| as given, of vectors that begin
 * so many floats into memory. */
static void check_momentum(const bm_momentum *m, float length, size_t off)
{
    float g[N], v[N], w[N], got_v[N], got_w[N], raw[2];
    float *d_g = NULL, *d_v = NULL, *d_w = NULL, *d_skipped = NULL;
    double norm = 0, scale = 1, skipped = -1;

    fill(g, N, 13);
    fill(v, N, 14);
    fill(w, N, 15);
    for (int i = 0; i < N; i++)
        norm += (double)g[i] * g[i];
    for (int i = 0; i < N; i++)
        g[i] *= (float)(length / sqrt(norm));
    if (m->clip > 0 && length > m->clip)
        scale = m->clip / length;
    d_g = place_at(off, g, N);
    d_v = place_at(off, v, N);
    d_w = place_at(off, w, N);
    assert_ok(bm_alloc(chosen, 2, &d_skipped));
    bm_momentum_step(chosen, m, N, 0, d_g + off, d_v + off, d_w + off,
                     (double *)(void *)d_skipped);
    bm_get(chosen, raw, d_skipped, 2);
    bm_get(chosen, got_v, d_v + off, N);
    read_back(got_w, d_w + off, N);
    memcpy(&skipped, raw, sizeof skipped);
    assert_true(skipped == 0);
    for (int i = 0; i < N; i++) {
        double step = m->rate * (scale * g[i] + m->decay * w[i]);
        double new_v = m->momentum * v[i] - step;
        double by = m->nesterov ? m->momentum * new_v - step : new_v;

        assert_true(near(got_v[i], new_v, 1e-6));
        assert_true(near(got_w[i], w[i] + by, 1e-6));
    }
    bm_free(chosen, d_g);
    bm_free(chosen, d_v);
    bm_free(chosen, d_w);
    bm_free(chosen, d_skipped);
}

static void test_momentum_step_follows_its_equations(void **state)
{
    const bm_momentum kinds[] = {
        {0.1f, 0.9f, 0, 0, false},    {0.1f, 0.9f, 0, 0, true},
        {0.1f, 0.9f, 0.02f, 0, true}, {0.1f, 0.5f, 0.02f, 5, false},
        {0.5f, 0, 0, 5, false},
    };

    (void)state;
    FOR_EACH (i, kinds) {
        check_momentum(&kinds[i], 2, 0);   /* below clip */
        check_momentum(&kinds[i], 200, 1); /* above it */
    }
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

static void test_gradient_that_is_no_number_changes_nothing(void **state)
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
        cmocka_unit_test(test_momentum_step_follows_its_equations),
        cmocka_unit_test(test_statistics_have_no_velocity),
        cmocka_unit_test(test_gradient_that_is_no_number_changes_nothing),
    };

    return RUN_GROUP_ON(argc, argv, "momentum", tests);
}
