/* The local update against its recurrence, in double precision. */
#include "sgd/sgd.h"
#include "sgd/update.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 100, STEPS = 20 };

typedef struct fixture {
    bm_params params;
    bm_sgd *sgd;
    float g[N], w[N], v[N]; /* on the host; g is what the next step takes */
} fixture;

static fixture start(bm_sgd_settings settings)
{
    static fixture f;

    memset(&f, 0, sizeof f);
    f.params.be = chosen;
    f.params.n = f.params.n_learned = N;
    assert_ok(bm_alloc(f.params.be, N, &f.params.w));
    assert_ok(bm_alloc(f.params.be, N, &f.params.g));
    assert_ok(bm_sgd_new(&f.sgd, &settings, &f.params));
    return f;
}

static void stop(fixture *f)
{
    bm_sgd_free(f->sgd);
    bm_free(f->params.be, f->params.w);
    bm_free(f->params.be, f->params.g);
}

static float *velocity(const fixture *f)
{
    float *x[BM_SGD_VECTORS];

    assert_int_equal(bm_sgd_vectors(f->sgd, x), 1);
    return x[0];
}

static void step(fixture *f, float rate)
{
    bm_put(f->params.be, f->params.g, f->g, N);
    bm_sgd_step(f->sgd, rate);
    bm_get(f->params.be, f->w, f->params.w, N);
    bm_get(f->params.be, f->v, velocity(f), N);
    assert_ok(bm_sync(f->params.be));
}

static float gradient(int i, int step)
{
    return (float)sin(i + 3 * step);
}

/* The norm of a step's gradient, limited to `clip`. */
static double scale_of(int step, double clip)
{
    double sum = 0;

    for (int i = 0; i < N; i++)
        sum += (double)gradient(i, step) * gradient(i, step);
    return clip == 0 || sqrt(sum) <= clip ? 1 : clip / sqrt(sum);
}

static void check_recurrence(double mu, double lambda, double clip,
                             bool nesterov)
{
    fixture f = start((bm_sgd_settings){.momentum = mu,
                                        .weight_decay = lambda,
                                        .clip = clip,
                                        .nesterov = nesterov});
    double w[N] = {0}, v[N] = {0};

    for (int t = 0; t < STEPS; t++) {
        double rate = 0.5 / (1 + t), scale = scale_of(t, clip);

        for (int i = 0; i < N; i++)
            f.g[i] = gradient(i, t);
        step(&f, (float)rate);
        for (int i = 0; i < N; i++) {
            double by = rate * (scale * gradient(i, t) + lambda * w[i]);
            v[i] = mu * v[i] - by;
            w[i] += nesterov ? mu * v[i] - by : v[i];
            assert_true(near(f.w[i], w[i], 1e-5));
        }
    }
    stop(&f);
}

static void test_update_follows_its_recurrence(void **state)
{
    static const double mus[] = {0, 0.5, 0.9}, lambdas[] = {0, 0.25};
    /* |g| is about sqrt(N / 2) = 7. */
    static const double clips[] = {0, 1, 7.05, 100};

    (void)state;
    FOR_EACH (m, mus)
        FOR_EACH (l, lambdas)
            FOR_EACH (c, clips) {
                check_recurrence(mus[m], lambdas[l], clips[c], false);
                check_recurrence(mus[m], lambdas[l], clips[c], true);
            }
}

/* PyTorch's m = mu m + g, w -= rate m (or rate (g + mu m)) while the rate is
 * constant. After the rate falls, ours keeps the old rate's velocity. */
static void check_pytorch(bool nesterov)
{
    fixture f = start((bm_sgd_settings){.momentum = 0.9, .nesterov = nesterov});
    double w[N] = {0}, m[N] = {0}, apart = 0;

    for (int t = 0; t < STEPS + 1; t++) {
        double rate = t < STEPS ? 0.1 : 0.01;

        for (int i = 0; i < N; i++)
            f.g[i] = gradient(i, t);
        step(&f, (float)rate);
        for (int i = 0; i < N; i++) {
            m[i] = 0.9 * m[i] + gradient(i, t);
            w[i] -= rate * (nesterov ? gradient(i, t) + 0.9 * m[i] : m[i]);
            if (t < STEPS)
                assert_true(near(f.w[i], w[i], 1e-5));
            apart = fmax(apart, fabs(f.w[i] - w[i]));
        }
    }
    assert_true(apart > 1e-3);
    stop(&f);
}

static void test_momentum_equals_pytorch_at_a_constant_rate(void **state)
{
    (void)state;
    check_pytorch(false);
    check_pytorch(true);
}

static void test_large_gradients_are_clipped_without_overflow(void **state)
{
    fixture f = start((bm_sgd_settings){.clip = 2});

    (void)state;
    for (int i = 0; i < N; i++) /* squares are beyond float's range */
        f.g[i] = i % 2 == 0 ? 1e30F : -1e30F;
    step(&f, 0.5F);
    for (int i = 0; i < N; i++) /* each is 2 / sqrt(N) */
        assert_true(near(f.w[i], i % 2 == 0 ? -0.1 : 0.1, 1e-6));
    stop(&f);
}

static void test_a_gradient_that_is_not_finite_is_skipped(void **x)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    fixture f = start((bm_sgd_settings){.momentum = 0.9, .weight_decay = 0.1});
    float w_before[N], v_before[N];
    double skipped = -1;

    (void)x;
    for (int i = 0; i < N; i++)
        f.g[i] = 1;
    step(&f, 0.5F);
    assert_ok(bm_sgd_skipped(f.sgd, &skipped));
    assert_true(skipped == 0);
    memcpy(w_before, f.w, sizeof w_before);
    memcpy(v_before, f.v, sizeof v_before);
    FOR_EACH (k, odd) {
        for (int i = 0; i < N; i++)
            f.g[i] = 1;
        f.g[N - 1 - k] = odd[k];
        step(&f, 0.5F);
    }
    assert_ok(bm_sgd_skipped(f.sgd, &skipped));
    assert_true(skipped == 3);
    assert_memory_equal(f.w, w_before, sizeof w_before);
    assert_memory_equal(f.v, v_before, sizeof v_before);
    assert_ok(bm_sgd_skipped(f.sgd, &skipped));
    assert_true(skipped == 0);
    stop(&f);
}

enum { LEARNED = N - 7 };

/* STEPS steps with gradient `last` at statistics, if there are any; then one
 * that is skipped. */
static void take_steps(const bm_sgd_settings *set, bm_params *p, float last)
{
    bm_sgd *sgd = NULL;
    float g[N];
    double skipped = 0;

    assert_ok(bm_sgd_new(&sgd, set, p));
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < N; i++)
            g[i] = i < LEARNED ? gradient(i, t) : last;
        bm_put(p->be, p->g, g, N);
        bm_sgd_step(sgd, 0.5F);
    }
    g[p->n - 1] = NAN;
    bm_put(p->be, p->g, g, N);
    bm_sgd_step(sgd, 0.5F);
    assert_ok(bm_sgd_skipped(sgd, &skipped));
    assert_true(skipped == 1);
    bm_sgd_free(sgd);
}

/* Nor decay, nor are they in the norm; but a NaN among them skips the step. */
static void test_statistics_are_updated_without_rate_and_momentum(void **state)
{
    bm_sgd_settings set = {
        .momentum = 0.9, .weight_decay = 0.25, .clip = 5, .nesterov = true};
    fixture f = start(set);
    bm_params with = f.params, without = f.params;
    float *learned = NULL, *w = NULL;

    (void)state;
    without.n = without.n_learned = with.n_learned = LEARNED;
    take_steps(&set, &without, 0);
    learned = fetch(f.params.be, f.params.w, LEARNED);
    bm_axpby(f.params.be, N, 0, f.params.w, 0, f.params.w);
    take_steps(&set, &with, -1e6F);
    w = fetch(f.params.be, f.params.w, N);
    assert_memory_equal(w, learned, LEARNED * sizeof *w);
    for (int i = LEARNED; i < N; i++)
        assert_true(w[i] == STEPS * 1e6F);
    free(learned);
    free(w);
    stop(&f);
}

/* ---- AdamW, RMSProp ----------------------------------------------------- */

static const bm_sgd_settings adamw = {.update = "adamw",
                                      .beta1 = 0.9,
                                      .beta2 = 0.99,
                                      .epsilon = 1e-3,
                                      .weight_decay = 0.1,
                                      .clip = 5};

/* With a rate that changes, which is not in the moments. */
static void test_adamw_follows_its_recurrence(void **state)
{
    fixture f = start(adamw);
    double w[N] = {0}, m[N] = {0}, v[N] = {0}, count = 0;

    (void)state;
    for (int t = 0; t < STEPS; t++) {
        double rate = 0.5 / (1 + t), scale = scale_of(t, 5);
        double c1 = 1 - pow(0.9, t + 1), c2 = 1 - pow(0.99, t + 1);

        for (int i = 0; i < N; i++)
            f.g[i] = gradient(i, t);
        bm_put(f.params.be, f.params.g, f.g, N);
        bm_sgd_step(f.sgd, (float)rate);
        bm_get(f.params.be, f.w, f.params.w, N);
        assert_ok(bm_sync(f.params.be));
        for (int i = 0; i < N; i++) {
            double g = scale * gradient(i, t);
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.99 * v[i] + 0.01 * g * g;
            w[i] -= rate * (0.1 * w[i] + m[i] / c1 / (sqrt(v[i] / c2) + 1e-3));
            assert_true(near(f.w[i], w[i], 1e-5));
        }
    }
    assert_ok(bm_sgd_count(f.sgd, &count));
    assert_true(count == STEPS);
    stop(&f);
}

/* Gradients of 0, and of 1e-23 and less, whose squares are 0 in a float. A step is
 * the rate at most, of RMSProp ten times the rate. */
static void test_the_least_epsilon_bounds_steps_of_tiny_gradients(void **state)
{
    static const char *const updates[] = {"adamw", "rmsprop"};

    (void)state;
    FOR_EACH (k, updates) {
        char set[40];
        bm_sgd_settings s = {0};
        bm_config *config = NULL;
        fixture f;

        assert_ok(bm_config_new(&config));
        assert_ok(bm_config_set(config, "sgd.epsilon=0"));
        assert_int_equal(bm_config_fill(config, "sgd", bm_sgd_options, &s),
                         BM_ERR_CONFIG);
        assert_ok(bm_config_set(config, "sgd.epsilon=1e-16"));
        snprintf(set, sizeof set, "sgd.update=%s", updates[k]);
        assert_ok(bm_config_set(config, set));
        assert_ok(bm_config_fill(config, "sgd", bm_sgd_options, &s));
        s.momentum = 0;
        s.beta2 = 0.99;
        f = start(s);
        for (int i = 0; i < N; i++)
            f.g[i] = i % 3 == 0 ? 0 : (float)pow(10, -17 - 0.25 * i);
        bm_put(f.params.be, f.params.g, f.g, N);
        bm_sgd_step(f.sgd, 0.125F);
        bm_get(f.params.be, f.w, f.params.w, N);
        assert_ok(bm_sync(f.params.be));
        for (int i = 0; i < N; i++)
            assert_true(f.g[i] == 0 ? f.w[i] == 0 : fabsf(f.w[i]) <= 1.26F);
        stop(&f);
        bm_config_free(config);
    }
}

static const bm_sgd_settings rmsprop = {.update = "rmsprop",
                                        .momentum = 0.5,
                                        .beta2 = 0.9,
                                        .epsilon = 1e-3,
                                        .weight_decay = 0.1,
                                        .clip = 5};

/* Weight decay is part of the gradient, but not of the norm that is clipped. */
static void test_rmsprop_follows_its_recurrence(void **state)
{
    fixture f = start(rmsprop);
    double w[N] = {0}, m[N] = {0}, v[N] = {0};

    (void)state;
    for (int t = 0; t < STEPS; t++) {
        double rate = 0.5 / (1 + t), scale = scale_of(t, 5);

        for (int i = 0; i < N; i++)
            f.g[i] = gradient(i, t);
        bm_put(f.params.be, f.params.g, f.g, N);
        bm_sgd_step(f.sgd, (float)rate);
        bm_get(f.params.be, f.w, f.params.w, N);
        assert_ok(bm_sync(f.params.be));
        for (int i = 0; i < N; i++) {
            double g = scale * gradient(i, t) + 0.1 * w[i];

            v[i] = 0.9 * v[i] + 0.1 * g * g;
            m[i] = 0.5 * m[i] + g / (sqrt(v[i]) + 1e-3);
            w[i] -= rate * m[i];
            assert_true(near(f.w[i], w[i], 1e-5));
        }
    }
    stop(&f);
}

static void test_state_vectors_have_names(void **state)
{
    bm_state s[BM_SGD_STATES];
    fixture f = start((bm_sgd_settings){.momentum = 0.9});

    (void)state;
    assert_int_equal(bm_sgd_state(f.sgd, -1, s), 1);
    assert_string_equal(s[0].name, "sgd.v");
    assert_int_equal(bm_sgd_state(f.sgd, 3, s), 1);
    assert_string_equal(s[0].name, "sgd.v.3");
    assert_true(s[0].count == N && s[0].whole == N);
    stop(&f);
    f = start(adamw);
    assert_int_equal(bm_sgd_state(f.sgd, 12, s), 3);
    assert_string_equal(s[0].name, "adam.m.12");
    assert_string_equal(s[1].name, "adam.v.12");
    assert_string_equal(s[2].name, "adam.t.12");
    assert_true(s[1].count == N && s[1].whole == N);
    assert_true(s[2].count == 1 && s[2].whole == 1);
    stop(&f);
    f = start(rmsprop);
    assert_int_equal(bm_sgd_state(f.sgd, 12, s), 3);
    assert_string_equal(s[0].name, "rmsprop.m.12");
    assert_string_equal(s[1].name, "rmsprop.v.12");
    assert_string_equal(s[2].name, "rmsprop.t.12");
    stop(&f);
}

/* Also with a fractional count, as after an average over workers. */
static void test_a_copy_continues_alike_and_a_reset_from_zero(void **state)
{
    fixture f = start(adamw);
    bm_sgd *copy = NULL, *sgd[2];
    float *w = NULL, after[2][N];
    double count = 0;

    (void)state;
    assert_ok(bm_sgd_new(&copy, &adamw, &f.params));
    sgd[0] = f.sgd;
    sgd[1] = copy;
    for (int i = 0; i < N; i++)
        f.g[i] = gradient(i, 0);
    bm_put(chosen, f.params.g, f.g, N);
    bm_sgd_step(f.sgd, 0.5F);
    bm_sgd_set_count(f.sgd, 2.25);
    bm_sgd_copy(copy, f.sgd);
    w = fetch(chosen, f.params.w, N);
    for (int k = 0; k < 2; k++) {
        bm_put(chosen, f.params.w, w, N);
        bm_put(chosen, f.params.g, f.g, N);
        bm_sgd_step(sgd[k], 0.25F);
        bm_get(chosen, after[k], f.params.w, N);
        assert_ok(bm_sgd_count(sgd[k], &count));
        assert_true(count == 3.25);
    }
    assert_memory_equal(after[0], after[1], sizeof after[0]);
    assert_memory_not_equal(after[0], w, sizeof after[0]);
    bm_sgd_reset(copy);
    assert_ok(bm_sgd_count(copy, &count));
    assert_true(count == 0);
    free(w);
    bm_sgd_free(copy);
    stop(&f);
}

static void test_local_state_is_parsed(void **state)
{
    static const struct {
        const char *word;
        bm_local_policy means;
    } rows[] = {{"reset", BM_LOCAL_RESET},
                {"keep", BM_LOCAL_KEEP},
                {"average", BM_LOCAL_AVERAGE},
                {"extrapolate", BM_LOCAL_EXTRAPOLATE}};
    bm_sgd_settings set = {0};

    (void)state;
    assert_ok(bm_config_fill(NULL, "sgd", bm_sgd_options, &set));
    assert_int_equal(bm_sgd_local_state(&set), BM_LOCAL_RESET);
    assert_true(set.momentum == 0.9 && set.clip == 5);
    FOR_EACH (i, rows) {
        set.local_state = rows[i].word;
        assert_int_equal(bm_sgd_local_state(&set), rows[i].means);
    }
}

static void test_reset_clears_nan_and_infinity(void **state)
{
    fixture f = start((bm_sgd_settings){.momentum = 0.5});
    float *v = velocity(&f);

    (void)state;
    for (int i = 0; i < N; i++)
        f.v[i] = i % 2 == 0 ? NAN : INFINITY;
    bm_put(f.params.be, v, f.v, N);
    bm_sgd_reset(f.sgd);
    bm_get(f.params.be, f.v, v, N);
    assert_ok(bm_sync(f.params.be));
    for (int i = 0; i < N; i++)
        assert_true(f.v[i] == 0);
    stop(&f);
}

/* A step of momentum SGD, AdamW or RMSProp with factor 3 of some weights is
 * that with three times the rate; frozen ones have no part in the norm. */
static void check_layer_rates(const bm_sgd_settings *set)
{
    static const bm_layer_rate layer_rates[] = {{10, 20, 3}, {50, 25, 0}};
    bm_params p = {.be = chosen, .n = N, .n_learned = LEARNED};
    float g[N], w[N], *x[3] = {NULL, NULL, NULL};

    assert_ok(bm_alloc(p.be, N, &p.g));
    for (int i = 0; i < N; i++)
        w[i] = gradient(i, 100);
    /* Layer rates; without them; at the higher rate. */
    for (int k = 0; k < 3; k++) {
        bm_sgd *sgd = NULL;
        double skipped = 0;

        assert_ok(bm_alloc(p.be, N, &p.w));
        bm_put(p.be, p.w, w, N);
        p.layer_rates = layer_rates;
        p.n_layer_rates = k == 0 ? 2 : 0;
        assert_ok(bm_sgd_new(&sgd, set, &p));
        for (int t = 0; t < STEPS; t++) {
            for (int i = 0; i < N; i++)
                g[i] = (k > 0 && i >= 50 && i < 75) || i >= LEARNED
                           ? 0
                           : gradient(i, t);
            bm_put(p.be, p.g, g, N);
            bm_sgd_step(sgd, (k == 2 ? 3 : 1) * 0.0625F);
        }
        x[k] = fetch(p.be, p.w, N);
        if (k == 0) { /* a step that is skipped changes no bit */
            float *after = NULL;

            g[0] = NAN;
            bm_put(p.be, p.g, g, N);
            bm_sgd_step(sgd, 0.5F);
            assert_ok(bm_sgd_skipped(sgd, &skipped));
            assert_true(skipped == 1);
            after = fetch(p.be, p.w, N);
            assert_memory_equal(after, x[0], N * sizeof *after);
            free(after);
        }
        bm_sgd_free(sgd);
        bm_free(p.be, p.w);
    }
    for (int i = 0; i < N; i++) {
        bool frozen = i >= 50 && i < 75, fast = i >= 10 && i < 30;

        if (frozen)
            assert_true(x[0][i] == w[i]);
        else if (!fast)
            assert_true(x[0][i] == x[1][i]);
        else
            assert_true(near(x[0][i], x[2][i], 1e-5));
    }
    for (int k = 0; k < 3; k++)
        free(x[k]);
    bm_free(p.be, p.g);
}

static void test_layers_have_learning_rates_of_their_own(void **state)
{
    bm_sgd_settings momentum = {
        .momentum = 0.9, .weight_decay = 0.25, .clip = 5, .nesterov = true};

    (void)state;
    check_layer_rates(&momentum);
    check_layer_rates(&adamw);
    check_layer_rates(&rmsprop);
}

/* ---- what the table of updates says of each ------------------------------- */

/* w <- the weights after three steps of gradients that are `scale` times as long;
 * `reset`: the state is cleared after each. */
static void take_three(const bm_sgd_settings *set, float scale, bool reset,
                       float w[N])
{
    fixture f = start(*set);

    for (int t = 1; t <= 3; t++) {
        for (int i = 0; i < N; i++)
            f.g[i] = scale * gradient(i, t);
        bm_put(f.params.be, f.params.g, f.g, N);
        bm_sgd_step(f.sgd, 0.125F);
        if (reset)
            bm_sgd_reset(f.sgd);
    }
    bm_get(f.params.be, w, f.params.w, N);
    assert_ok(bm_sync(f.params.be));
    stop(&f);
}

static bool differ(const float x[N], const float y[N])
{
    for (int i = 0; i < N; i++)
        if (!near(x[i], y[i], 1e-4))
            return true;
    return false;
}

static const bm_sgd_settings usual = {.momentum = 0.5,
                                      .beta1 = 0.75,
                                      .beta2 = 0.875,
                                      .epsilon = 1e-10,
                                      .local_state = "reset"};

static void test_updates_use_the_settings_that_they_name(void **state)
{
    static const char *const names[] = {"momentum", "nesterov", "beta1",
                                        "beta2", "epsilon"};
    float before[N], after[N];

    (void)state;
    for (size_t k = 0; bm_updates[k] != NULL; k++) {
        FOR_EACH (i, names) {
            bm_sgd_settings set = usual;

            set.update = bm_updates[k]->name;
            assert_ptr_equal(bm_update_of(&set), bm_updates[k]);
            take_three(&set, 1, false, before);
            set.momentum = i == 0 ? 0.9 : set.momentum;
            set.nesterov = i == 1;
            set.beta1 = i == 2 ? 0.9 : set.beta1;
            set.beta2 = i == 3 ? 0.99 : set.beta2;
            set.epsilon = i == 4 ? 0.5 : set.epsilon;
            take_three(&set, 1, false, after);
            if (differ(before, after) !=
                bm_update_uses(bm_updates[k], names[i]))
                fail_msg("sgd.update = %s and sgd.%s: see .uses", set.update,
                         names[i]);
        }
    }
}

static void test_the_traits_of_updates_are_theirs(void **state)
{
    static const double momenta[] = {0, 0.5};
    float once[N], scaled[N], cleared[N];

    (void)state;
    for (size_t k = 0; bm_updates[k] != NULL; k++) {
        bm_sgd_settings set = usual;

        set.update = bm_updates[k]->name;
        FOR_EACH (i, momenta) {
            set.momentum = momenta[i];
            take_three(&set, 1, false, once);
            take_three(&set, 1, true, cleared);
            assert_int_equal(differ(once, cleared), bm_sgd_has_state(&set));
            take_three(&set, 4, false, scaled);
            assert_int_equal(differ(once, scaled), !bm_updates[k]->unscaled);
        }
    }
}

static void test_names_of_states_are_known(void **state)
{
    (void)state;
    assert_true(bm_update_is_state("sgd.v", 5));
    assert_true(bm_update_is_state("sgd.v.3", 5));
    assert_true(bm_update_is_state("adam.t", 6));
    assert_true(bm_update_is_state("rmsprop.m", 9));
    assert_false(bm_update_is_state("sgd.v.3", 7));
    assert_false(bm_update_is_state("sgd.", 4));
    assert_false(bm_update_is_state("delta", 5));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_update_follows_its_recurrence),
        cmocka_unit_test(test_momentum_equals_pytorch_at_a_constant_rate),
        cmocka_unit_test(test_large_gradients_are_clipped_without_overflow),
        cmocka_unit_test(test_a_gradient_that_is_not_finite_is_skipped),
        cmocka_unit_test(test_statistics_are_updated_without_rate_and_momentum),
        cmocka_unit_test(test_adamw_follows_its_recurrence),
        cmocka_unit_test(test_the_least_epsilon_bounds_steps_of_tiny_gradients),
        cmocka_unit_test(test_rmsprop_follows_its_recurrence),
        cmocka_unit_test(test_state_vectors_have_names),
        cmocka_unit_test(test_a_copy_continues_alike_and_a_reset_from_zero),
        cmocka_unit_test(test_local_state_is_parsed),
        cmocka_unit_test(test_reset_clears_nan_and_infinity),
        cmocka_unit_test(test_layers_have_learning_rates_of_their_own),
        cmocka_unit_test(test_updates_use_the_settings_that_they_name),
        cmocka_unit_test(test_the_traits_of_updates_are_theirs),
        cmocka_unit_test(test_names_of_states_are_known),
    };

    return RUN_GROUP_ON(argc, argv, "sgd", tests);
}
