/* AdamW and RMSProp against PyTorch's numbers, and at its limits. test_operations.c
 * compares the update with its equations. */
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

/* The vectors of an update, on the host and on the backend: n learned numbers,
 * then statistics. */
typedef struct rig {
    size_t n, statistics;
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
    bm_put(chosen, r->on_g, r->g, N);
    bm_put(chosen, r->on_m, r->m, N);
    bm_put(chosen, r->on_v, r->v, N);
    bm_put(chosen, r->on_w, r->w, N);
    bm_put(chosen, r->on_t, &r->t, 1);
}

static rig start(size_t statistics)
{
    rig r = {.n = N - statistics, .statistics = statistics};

    for (size_t i = 0; i < N; i++) {
        r.g[i] = number(i, 1);
        r.m[i] = number(i, 2);
        r.v[i] = fabsf(number(i, 3));
        r.w[i] = number(i, 4);
    }
    r.on_g = room(N);
    r.on_m = room(N);
    r.on_v = room(N);
    r.on_w = room(N);
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
    bm_adam_step(chosen, a, r->n, r->statistics, r->on_g, r->on_m, r->on_v,
                 r->on_w, r->on_t, (double *)(void *)r->on_skipped);
    bm_get(chosen, r->m, r->on_m, N);
    bm_get(chosen, r->v, r->on_v, N);
    bm_get(chosen, r->w, r->on_w, N);
    bm_get(chosen, &r->t, r->on_t, 1);
    bm_get(chosen, raw, r->on_skipped, 2);
    assert_ok(bm_sync(chosen));
    memcpy(&r->skipped, raw, sizeof r->skipped);
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
static void test_steps_match_pytorch(void **state)
{
    static const double expected[] = {-0.001496000, 0.030959016, 1.655924451,
                                      -0.498996010};
    const bm_adam a = {0.1, 0.9, 0.999, 1e-8, 0.01, 0, false};
    rig r = start(N - 4);

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

/*
 * From PyTorch 2.15, in float64, with gradients as above:
 *
 *     torch.optim.RMSprop([w], lr=0.1)
 *     torch.optim.RMSprop([w], lr=0.1, alpha=0.9, eps=0.01, momentum=0.5,
 *                         weight_decay=0.2)
 */
static void test_rmsprop_steps_match_pytorch(void **state)
{
    static const struct {
        bm_adam of;
        double expected[4];
    } rows[] = {
        {{0.1, 0, 0.99, 1e-8, 0, 0, true},
         {-2.744605366, 0.147173575, -1.431561468, -3.244375911}},
        {{0.1, 0.5, 0.9, 0.01, 0.2, 0, true},
         {-1.172522887, 0.152281345, 0.026959503, -0.005940910}},
    };

    (void)state;
    FOR_EACH (k, rows) {
        rig r = start(N - 4);

        memset(r.m, 0, sizeof r.m);
        memset(r.v, 0, sizeof r.v);
        memcpy(r.w, (float[]){0.5F, -0.25F, 2, 0}, 4 * sizeof *r.w);
        for (int s = 0; s < 5; s++) {
            const float g[] = {1, -2 + (float)s, 0.25F * (float)s, 1e-3F};

            memcpy(r.g, g, sizeof g);
            step(&r, &rows[k].of);
        }
        for (int i = 0; i < 4; i++)
            assert_true(near(r.w[i], rows[k].expected[i], 1e-6));
        stop(&r);
    }
}

static void test_gradient_without_a_finite_square_is_skipped(void **state)
{
    const float bad[] = {NAN, INFINITY, -INFINITY, 2e19F};
    const bm_adam a = {0.1, 0.9, 0.999, 1e-8, 0.01, 0, false};
    rig before = start(3), r = before;

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

/* Clipping comes first: the square of the result is finite. */
static void test_large_gradients_are_clipped_without_overflow(void **state)
{
    const bm_adam a = {0.5, 0, 0, 0, 0, 1, false};
    rig r = start(0);

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

/* Products read a bf16 copy, which exists since the first product. */
static void test_products_read_the_updated_weights(void **state)
{
    const bm_adam a = {0.25, 0.9, 0.999, 1e-8, 0, 0, false};
    const float one = 1;
    rig r = start(0);
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
        cmocka_unit_test(test_steps_match_pytorch),
        cmocka_unit_test(test_rmsprop_steps_match_pytorch),
        cmocka_unit_test(test_gradient_without_a_finite_square_is_skipped),
        cmocka_unit_test(test_large_gradients_are_clipped_without_overflow),
        cmocka_unit_test(test_products_read_the_updated_weights),
    };

    return RUN_GROUP_ON(argc, argv, "adam", tests);
}
