/*
 * The filter alone: against momentum SGD, against numbers worked out by hand,
 * and against theory for its speed and bounds of convergence.
 */
#include "bmuf/filter.h"
#include "tests/support/support.h"

#include <math.h>

/*
 * SGD with Nesterov momentum, in the form that works on one vector (PyTorch's),
 * with -G for a gradient: v = eta v - G; start -= zeta (eta v - G).
 */
static void test_nesterov_filter_is_nesterov_sgd_on_minus_g(void **state)
{
    bm_filter filter = {.momentum = 0.9, .rate = 0.7, .nesterov = true};
    float x = 0, model = 1, delta = 0;
    double start = 1, v = 0;

    (void)state;
    for (int t = 0; t < 200; t++) {
        double g = sin(t * t);

        x = (float)g;
        bm_filter_block(&filter, 1, &x, &model, &delta, &x);
        v = 0.9 * v - g;
        start -= 0.7 * (0.9 * v - g);
        assert_true(near(x, start, 1e-5));
    }
}

/* Block momentum 1/2, rate 1, G = 1, 2, -1, 4: exact in floats. */
static void test_filter_has_the_published_form(void **state)
{
    static const float g[] = {1, 2, -1, 4};
    static const float classical[] = {1, 3.5f, 3.75f, 7.875f};
    static const float ahead[] = {1.5f, 4.75f, 3.875f, 9.9375f};
    static const float averaging[] = {1, 3, 2, 6};
    static const float as_coded[] = {1.5f, 5.25f, 5.625f, 11.8125f};
    bm_filter cbm = {0.5, 1, false, false}, nbm = {0.5, 1, true, false},
              ma = {0, 1, false, false}, coded = {0.5, 1.5, false, false};
    float x = 0, model[4] = {0}, delta[4] = {0};

    (void)state;
    FOR_EACH (t, g) {
        x = g[t];
        bm_filter_block(&cbm, 1, &x, &model[0], &delta[0], &x);
        assert_true(x == classical[t] && model[0] == classical[t]);
        x = g[t];
        bm_filter_block(&nbm, 1, &x, &model[1], &delta[1], &x);
        assert_true(x == ahead[t] && model[1] == classical[t]);
        bm_filter_start(&nbm, 1, &model[1], &delta[1], &x);
        assert_true(x == ahead[t]);
        x = g[t];
        bm_filter_block(&ma, 1, &x, &model[2], &delta[2], &x);
        assert_true(x == averaging[t] && model[2] == averaging[t]);
        x = g[t];
        bm_filter_block(&coded, 1, &x, &model[3], &delta[3], &x);
        assert_true(x == as_coded[t] && model[3] == as_coded[t]);
    }
}

static void test_default_momentum_is_one_minus_one_over_workers(void **state)
{
    (void)state;
    assert_true(bm_filter_momentum(1) == 0);
    assert_true(bm_filter_momentum(4) == 0.75);
    assert_true(bm_filter_momentum(16) == 0.9375);
    assert_true(bm_filter_momentum_of_many(2) == 0.5);
    assert_true(bm_filter_momentum_of_many(4) == 0.75);
    assert_true(bm_filter_momentum_of_many(8) == 0.875);
    assert_true(bm_filter_momentum_of_many(64) == 0.9);
}

/* A constant G moves the model by zeta / (1 - eta) G a block in the end. */
static void test_steady_gain_is_zeta_over_one_minus_eta(void **state)
{
    (void)state;
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        bm_filter filter = {0.9375, 0.5, nesterov, false};
        float x = 0, model = 0, delta = 0, last = 0;

        for (int t = 0; t < 400; t++) {
            x = 0.25f;
            last = model;
            bm_filter_block(&filter, 1, &x, &model, &delta, &x);
        }
        assert_true(near(model - last, 0.25 * 0.5 / (1 - 0.9375), 1e-4));
    }
}

/* A block removes the fraction c of the error; the filter's spectral radius is
 * sqrt(eta (1 - zeta c)) with Nesterov momentum while the roots are complex. */
static void test_filter_converges_as_fast_as_predicted(void **state)
{
    bm_filter filter = {.momentum = 0.9375, .rate = 1, .nesterov = true};
    double c = 0.5, radius = sqrt(0.9375 * (1 - c)), norm[2] = {0};
    double start = 1;
    float x = 0, model = 1, delta = 0;

    (void)state;
    for (int t = 1; t <= 60; t++) {
        x = (float)(-c * start);
        bm_filter_block(&filter, 1, &x, &model, &delta, &x);
        start = x;
        /* Over a window: the error oscillates. */
        norm[t > 30] = fmax(norm[t > 30], fabs(start) / pow(radius, t));
    }
    assert_true(norm[1] < 2 * norm[0] && norm[1] > norm[0] / 20);
}

/* ---- on a quadratic ----------------------------------------------------- */

/* A block of workers that remove the fraction c of the error of their start. */
static void block(const bm_filter *f, double c, float *model, float *delta)
{
    float x = 0;

    bm_filter_start(f, 1, model, delta, &x);
    x = (float)(-c * x);
    bm_filter_block(f, 1, &x, model, delta, &x);
}

/* A block is a linear map of (model, Delta). */
typedef struct map {
    double trace, det;
} map;

static map map_of(const bm_filter *f, double c)
{
    float w[2] = {1, 0}, d[2] = {0, 1};

    for (int i = 0; i < 2; i++)
        block(f, c, &w[i], &d[i]);
    return (map){(double)w[0] + d[1],
                 (double)w[0] * d[1] - (double)w[1] * d[0]};
}

/* The larger modulus of its eigenvalues. */
static double radius(map m)
{
    double root = m.trace * m.trace / 4 - m.det;

    return root < 0 ? sqrt(m.det) : fabs(m.trace) / 2 + sqrt(root);
}

/* The eigenvalues are those of [1 - zc, eta; -zc, eta] and, with Nesterov
 * momentum, of that with eta (1 - zc) for eta: where they are complex, their
 * modulus is sqrt(eta) whatever c is, and sqrt(eta (1 - zc)). */
static void test_a_block_has_the_predicted_eigenvalues(void **state)
{
    static const double etas[] = {0, 0.5, 0.75, 0.9375}, zetas[] = {0.5, 1, 2},
                        fractions[] = {0.01, 0.1, 0.5, 0.9};

    (void)state;
    FOR_EACH (e, etas)
        FOR_EACH (z, zetas)
            FOR_EACH (i, fractions)
                for (int nesterov = 0; nesterov < 2; nesterov++) {
                    bm_filter f = {etas[e], zetas[z], nesterov, false};
                    double zc = zetas[z] * fractions[i];
                    double eta = etas[e] * (nesterov ? 1 - zc : 1);
                    map m = map_of(&f, fractions[i]);

                    assert_true(near(m.trace, 1 - zc + eta, 1e-6));
                    assert_true(near(m.det, eta, 1e-6));
                }
}

/* Block momentum 15/16: classical momentum does not damp, Nesterov's does. */
static void test_nesterov_momentum_damps(void **state)
{
    static const struct {
        double c, averaging, classical, nesterov; /* as coded: classical */
    } rows[] = {{0.01, 0.9900, 0.9682, 0.9634},
                {0.10, 0.9000, 0.9682, 0.9186},
                {0.50, 0.5000, 0.9682, 0.6847},
                {0.90, 0.1000, 0.9682, 0.3062}};
    bm_filter ma = {0, 1, false, false}, cbm = {0.9375, 1, false, false},
              nbm = {0.9375, 1, true, false},
              coded = {0.9375, 1.9375, false, false};

    (void)state;
    FOR_EACH (i, rows) {
        double c = rows[i].c;

        assert_true(near(radius(map_of(&ma, c)), rows[i].averaging, 1e-4));
        assert_true(near(radius(map_of(&cbm, c)), rows[i].classical, 1e-4));
        assert_true(near(radius(map_of(&coded, c)), rows[i].classical, 1e-4));
        assert_true(near(radius(map_of(&nbm, c)), rows[i].nesterov, 1e-4));
        assert_true(near(radius(map_of(&cbm, c)), sqrt(0.9375), 1e-6));
        assert_true(
            near(radius(map_of(&nbm, c)), sqrt(0.9375 * (1 - c)), 1e-6));
    }
}

/* The error after many blocks, from 1; or as soon as it is large. */
static double final_error(const bm_filter *f, double c)
{
    float model = 1, delta = 0;

    for (int t = 0; t < 1000 && fabsf(model) < 1e6F; t++)
        block(f, c, &model, &delta);
    return fabsf(model) + fabsf(delta);
}

/* Stable for zeta c < 2 (1 + eta), and for < 2 (1 + eta) / (1 + 2 eta) with
 * Nesterov momentum: tested one percent inside and outside. */
static void test_errors_grow_beyond_the_bound_of_stability(void **state)
{
    static const double etas[] = {0, 0.5, 0.75, 0.9375}, zetas[] = {0.5, 1};

    (void)state;
    FOR_EACH (e, etas)
        FOR_EACH (z, zetas)
            for (int nesterov = 0; nesterov < 2; nesterov++) {
                bm_filter f = {etas[e], zetas[z], nesterov, false};
                double most = 2 * (1 + etas[e]) / zetas[z];

                if (nesterov)
                    most /= 1 + 2 * etas[e];
                assert_true(final_error(&f, 0.99 * most) < 1e-3);
                assert_true(final_error(&f, 1.01 * most) > 1e3);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nesterov_filter_is_nesterov_sgd_on_minus_g),
        cmocka_unit_test(test_filter_has_the_published_form),
        cmocka_unit_test(test_default_momentum_is_one_minus_one_over_workers),
        cmocka_unit_test(test_steady_gain_is_zeta_over_one_minus_eta),
        cmocka_unit_test(test_filter_converges_as_fast_as_predicted),
        cmocka_unit_test(test_a_block_has_the_predicted_eigenvalues),
        cmocka_unit_test(test_nesterov_momentum_damps),
        cmocka_unit_test(test_errors_grow_beyond_the_bound_of_stability),
    };
    return RUN_GROUP("filter", tests);
}
