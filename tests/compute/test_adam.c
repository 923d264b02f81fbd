/* One operation of AdamW on every backend of this build: against its equations
 * in double precision, and against PyTorch's numbers. */
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 5003 };

static float number(size_t i, double seed)
{
    return (float)sin(seed + 1.7 * (double)i);
}

/* The vectors of an update, on the host and, `off` floats into memory, on the
 * backend: behind n learned numbers so many statistics. */
typedef struct rig {
    size_t n, statistics, off;
    float g[N], m[N], v[N], w[N], t;
    float *on_g, *on_m, *on_v, *on_w, *on_t, *on_skipped;
    double skipped;
} rig;

static float *room(size_t n)
{
    float *x = NULL;

    assert_ok(bm_alloc(chosen, n, &x));
    return x;
}

static void send(rig *r)
{
    bm_put(chosen, r->on_g + r->off, r->g, N);
    bm_put(chosen, r->on_m + r->off, r->m, N);
    bm_put(chosen, r->on_v + r->off, r->v, N);
    bm_put(chosen, r->on_w + r->off, r->w, N);
    bm_put(chosen, r->on_t, &r->t, 1);
}

static rig start(size_t statistics, size_t off)
{
    rig r = {.n = N - statistics, .statistics = statistics, .off = off};

    for (size_t i = 0; i < N; i++) {
        r.g[i] = number(i, 1);
        r.m[i] = number(i, 2);
        r.v[i] = fabsf(number(i, 3));
        r.w[i] = number(i, 4);
    }
    r.on_g = room(off + N);
    r.on_m = room(off + N);
    r.on_v = room(off + N);
    r.on_w = room(off + N);
    r.on_t = room(1);
    r.on_skipped = room(2);
    return r;
}

static void stop(rig *r)
{
    bm_free(chosen, r->on_g);
    bm_free(chosen, r->on_m);
    bm_free(chosen, r->on_v);
    bm_free(chosen, r->on_w);
    bm_free(chosen, r->on_t);
    bm_free(chosen, r->on_skipped);
}

static void step(rig *r, const bm_adam *a)
{
    float raw[2];

    send(r);
    bm_adam_step(chosen, a, r->n, r->statistics, r->on_g + r->off,
                 r->on_m + r->off, r->on_v + r->off, r->on_w + r->off, r->on_t,
                 (double *)(void *)r->on_skipped);
    bm_get(chosen, r->m, r->on_m + r->off, N);
    bm_get(chosen, r->v, r->on_v + r->off, N);
    bm_get(chosen, r->w, r->on_w + r->off, N);
    bm_get(chosen, &r->t, r->on_t, 1);
    bm_get(chosen, raw, r->on_skipped, 2);
    assert_ok(bm_sync(chosen));
    memcpy(&r->skipped, raw, sizeof r->skipped);
}

/* Three steps in double from where the rig is, beside it. */
static void check_equations(const bm_adam *a, size_t statistics, size_t off,
                            float t)
{
    static double m[N], v[N], w[N];
    rig r = start(statistics, off);
    double norm = 0, scale = 1;

    r.t = t;
    for (size_t i = 0; i < N; i++) {
        m[i] = r.m[i];
        v[i] = r.v[i];
        w[i] = r.w[i];
        norm += i < r.n ? (double)r.g[i] * r.g[i] : 0;
    }
    if (a->clip > 0 && sqrt(norm) > a->clip)
        scale = a->clip / sqrt(norm);
    for (int k = 1; k <= 3; k++) {
        double c1 = 1 - pow(a->beta1, t + k), c2 = 1 - pow(a->beta2, t + k);

        step(&r, a);
        assert_true(r.t == t + (float)k && r.skipped == 0);
        for (size_t i = 0; i < r.n; i++) {
            double g = scale * r.g[i];

            m[i] = a->beta1 * m[i] + (1 - a->beta1) * g;
            v[i] = a->beta2 * v[i] + (1 - a->beta2) * g * g;
            w[i] -= a->rate * (a->decay * w[i] +
                               m[i] / c1 / (sqrt(v[i] / c2) + a->epsilon));
            assert_true(near(r.m[i], m[i], 1e-6));
            assert_true(near(r.v[i], v[i], 1e-6));
            assert_true(near(r.w[i], w[i], 1e-5));
        }
        for (size_t i = r.n; i < N; i++) {
            w[i] -= r.g[i];
            assert_true(r.m[i] == (float)m[i] && r.v[i] == (float)v[i]);
            assert_true(near(r.w[i], w[i], 1e-6));
        }
    }
    stop(&r);
}

static void test_it_follows_its_equations(void **state)
{
    const bm_adam kinds[] = {
        {0.01, 0.9, 0.999, 1e-8, 0, 0}, {0.01, 0.9, 0.999, 1e-8, 0.5, 0},
        {0.01, 0.5, 0.9, 0.1, 0.1, 10}, /* |g| is about 50 */
        {0.01, 0, 0, 1e-3, 0, 100},     {0, 0.9, 0.999, 1e-8, 0.5, 1},
    };

    (void)state;
    FOR_EACH (i, kinds) {
        check_equations(&kinds[i], 0, 0, 0);
        check_equations(&kinds[i], 3, 0, 100);
        check_equations(&kinds[i], 0, 1, 2.625F); /* not to be taken by fours */
    }
}

/*
 * From PyTorch 2.15, in float64:
 *
 *     w = torch.tensor([0.5, -0.25, 2.0, 0.0], requires_grad=True)
 *     o = torch.optim.AdamW([w], lr=0.1, weight_decay=0.01)
 *     for s in range(5):
 *         w.grad = torch.tensor([1.0, -2.0 + s, 0.25 * s, 1e-3])
 *         o.step()
 */
static void test_it_is_pytorch_s(void **state)
{
    static const double expected[] = {-0.001496000, 0.030959016, 1.655924451,
                                      -0.498996010};
    const bm_adam a = {0.1, 0.9, 0.999, 1e-8, 0.01, 0};
    rig r = start(N - 4, 0);

    (void)state;
    memset(r.m, 0, sizeof r.m);
    memset(r.v, 0, sizeof r.v);
    memcpy(r.w, (float[]){0.5F, -0.25F, 2, 0}, 4 * sizeof *r.w);
    for (int s = 0; s < 5; s++) {
        const float g[] = {1, -2 + (float)s, 0.25F * (float)s, 1e-3F};

        memcpy(r.g, g, sizeof g);
        step(&r, &a);
    }
    for (int i = 0; i < 4; i++)
        assert_true(near(r.w[i], expected[i], 1e-6));
    stop(&r);
}

static void test_a_gradient_without_a_square_changes_nothing(void **state)
{
    const float bad[] = {NAN, INFINITY, -INFINITY, 2e19F};
    const bm_adam a = {0.1, 0.9, 0.999, 1e-8, 0.01, 0};
    rig before = start(3, 0), r = before;

    (void)state;
    FOR_EACH (i, bad) {
        r.g[(i + 1) * 1000] = bad[i];
        step(&r, &a);
        r.g[(i + 1) * 1000] = 1;
    }
    r.g[N - 1] = NAN; /* a statistic */
    step(&r, &a);
    assert_true(r.skipped == 5 && r.t == 0);
    assert_memory_equal(r.m, before.m, sizeof r.m);
    assert_memory_equal(r.v, before.v, sizeof r.v);
    assert_memory_equal(r.w, before.w, sizeof r.w);
    stop(&r);
}

/* Clipping comes first: what it leaves has a square. */
static void test_large_gradients_are_clipped_without_overflow(void **state)
{
    const bm_adam a = {0.5, 0, 0, 0, 0, 1};
    rig r = start(0, 0);

    (void)state;
    for (size_t i = 0; i < N; i++)
        r.g[i] = i % 2 == 0 ? 1e30F : -1e30F;
    step(&r, &a);
    assert_true(r.skipped == 0 && r.t == 1);
    for (size_t i = 0; i < N; i++) {
        assert_true(near(r.v[i], 1.0 / N, 1e-6 / N));
        assert_true(
            near(r.w[i], number(i, 4) - (i % 2 == 0 ? 0.5 : -0.5), 1e-6));
    }
    stop(&r);
}

/* They read a copy of their own, in bf16, which is there from the first on. */
static void test_products_see_the_new_weights(void **state)
{
    const bm_adam a = {0.25, 0.9, 0.999, 1e-8, 0, 0};
    const float one = 1;
    rig r = start(0, 0);
    float *x = place(chosen, &one, 1), *y = room(N), *got = NULL;

    (void)state;
    send(&r);
    for (int k = 0; k < 2; k++) {
        bm_gemm(chosen, false, false, 1, bm_matrix(r.on_w, N, 1),
                bm_matrix(x, 1, 1), 0, bm_matrix(y, N, 1));
        if (k == 0)
            step(&r, &a);
    }
    got = fetch(chosen, y, N);
    for (size_t i = 0; i < N; i++)
        assert_true(fabsf(got[i] - r.w[i]) <= 0x1p-8 * fabsf(r.w[i]));
    free(got);
    bm_free(chosen, x);
    bm_free(chosen, y);
    stop(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_follows_its_equations),
        cmocka_unit_test(test_it_is_pytorch_s),
        cmocka_unit_test(test_a_gradient_without_a_square_changes_nothing),
        cmocka_unit_test(test_large_gradients_are_clipped_without_overflow),
        cmocka_unit_test(test_products_see_the_new_weights),
    };

    return RUN_GROUP_ON(argc, argv, "adam", tests);
}
