/*
 * AdamW inside of blocks, and its moments between them, against the whole
 * algorithm in double precision.
 */
#include "tests/support/reference/halts.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double beta[2] = {0.8, 0.95};
static const double rate = 0.25, decay = 0.01, epsilon = 0.5;

#define ADAM                                                                   \
    "sgd.update=adamw", "sgd.beta1=0.8", "sgd.beta2=0.95", "sgd.epsilon=0.5",  \
        "sgd.weight_decay=0.01"

/* The state of a worker's update: m, v and t. */
typedef struct moments {
    double x[2][N], t;
} moments;

/* One worker's share on w; returns the updates made. */
static int learn(const problem *p, bm_position at, int worker, double *w,
                 moments *of)
{
    static double g[N];
    int steps = 0;

    for (; gradient_of(p, at, worker, steps, w, g) > 0; steps++) {
        of->t += 1;
        for (int i = 0; i < N; i++) {
            double *m = &of->x[0][i], *v = &of->x[1][i];

            *m = beta[0] * *m + (1 - beta[0]) * g[i];
            *v = beta[1] * *v + (1 - beta[1]) * g[i] * g[i];
            w[i] -=
                rate * (decay * w[i] +
                        *m / (1 - pow(beta[0], of->t)) /
                            (sqrt(*v / (1 - pow(beta[1], of->t))) + epsilon));
        }
    }
    return steps;
}

/* The moments of block-filter.md's BMUF-Adam, as PIKA writes them. */
static double extrapolate(int which, double before, double mean, double tau,
                          double ahead)
{
    double b = beta[which], past = pow(b, tau);
    double x = (past * (pow(b, ahead) - 1) * before +
                (1 - pow(b, tau + ahead)) * mean) /
               (1 - past);

    return which == 1 ? fmax(x, 0) : x;
}

/* Moments where a block ends: m[k] of worker k; `start`, what all of them began
 * with, unless they keep their own. */
static void end_moments(bm_local_policy policy, const double *weight,
                        double tau, double ahead, moments *start, moments *m)
{
    static const moments zero;

    if (policy == BM_LOCAL_KEEP)
        return;
    for (int i = 0; i < 2 * N; i++) {
        int which = i / N, j = i % N;
        double mean = 0;

        for (int k = 0; k < WORKERS; k++)
            mean += weight[k] * m[k].x[which][j];
        start->x[which][j] =
            extrapolate(which, start->x[which][j], mean, tau, ahead);
    }
    start->t += tau + ahead;
    for (int k = 0; k < WORKERS; k++)
        m[k] = policy == BM_LOCAL_RESET ? zero : *start;
}

/* bmuf with Nesterov momentum eta and rate zeta. `equal`: means are of workers
 * with data, not of samples. */
static void expect(const problem *p, bm_local_policy policy, bool equal,
                   double eta, double zeta, double *model)
{
    static double begin[N], delta[N], w[N], mean[N];
    static moments of[WORKERS], start;
    double rho = 0;

    memset(begin, 0, sizeof begin);
    memset(delta, 0, sizeof delta);
    memset(of, 0, sizeof of);
    memset(&start, 0, sizeof start);
    memset(model, 0, N * sizeof *model);
    for (int t = 0; t < EPOCHS * BLOCKS; t++) {
        bm_position at = {t / BLOCKS, t % BLOCKS};
        double weight[WORKERS], total = 0, tau = 0;

        for (int k = 0; k < WORKERS; k++) {
            weight[k] = (double)share(p, at, k);
            if (equal)
                weight[k] = weight[k] > 0;
            total += weight[k];
        }
        memset(mean, 0, sizeof mean);
        for (int k = 0; k < WORKERS; k++) {
            weight[k] /= total;
            memcpy(w, begin, sizeof w);
            tau += weight[k] * learn(p, at, k, w, &of[k]);
            for (int i = 0; i < N; i++)
                mean[i] += weight[k] * (w[i] - begin[i]);
        }
        rho = eta * rho + tau;
        end_moments(policy, weight, tau,
                    policy == BM_LOCAL_EXTRAPOLATE ? eta * rho : 0, &start, of);
        for (int i = 0; i < N; i++) {
            delta[i] = eta * delta[i] + zeta * mean[i];
            model[i] += delta[i];
            begin[i] = model[i] + eta * delta[i];
        }
    }
}

static void test_moments_follow_each_policy(void **state)
{
    static const char *const policies[] = {[BM_LOCAL_RESET] = "reset",
                                           [BM_LOCAL_KEEP] = "keep",
                                           [BM_LOCAL_AVERAGE] = "average",
                                           [BM_LOCAL_EXTRAPOLATE] =
                                               "extrapolate"};
    static const problem *const problems[] = {&even, &ragged};
    static result got;
    static double expected[N];

    FOR_EACH (k, policies)
        FOR_EACH (p, problems) {
            char policy[40];
            const char *const settings[] = {"train.strategy=bmuf",
                                            "bmuf.momentum=0.75",
                                            "bmuf.rate=0.875",
                                            STEADY,
                                            ADAM,
                                            policy,
                                            NULL};

            snprintf(policy, sizeof policy, "sgd.local_state=%s", policies[k]);
            run_job(*state, *problems[p], settings, &got);
            expect(problems[p], (bm_local_policy)k, false, 0.75, 0.875,
                   expected);
            for (int i = 0; i < N; i++)
                assert_true(near(got.model[i], expected[i], 1e-5));
        }
}

/* fairseq's mean counts workers: of models and of moments. */
static void test_moments_are_weighted_as_models(void **state)
{
    static const char *const settings[] = {"train.strategy=fairseq",
                                           "fairseq.block_momentum=0",
                                           STEADY,
                                           ADAM,
                                           "sgd.local_state=average",
                                           NULL};
    static result got;
    static double expected[N];

    run_job(*state, ragged, settings, &got);
    expect(&ragged, BM_LOCAL_AVERAGE, true, 0, 1, expected);
    for (int i = 0; i < N; i++)
        assert_true(near(got.model[i], expected[i], 1e-5));
}

/* After some blocks of six updates a worker: rho and t. */
static void run_even(bm_comm *comm, const char *eta, int blocks, double *rho,
                     double *t)
{
    const char *const settings[] = {
        "train.strategy=bmuf",         eta, STEADY, ADAM,
        "sgd.local_state=extrapolate", NULL};
    job j = open_job(comm, even, settings);
    bm_state states[STATES];
    bm_block_report report;
    size_t n = 0;

    start_job(&j);
    for (int b = 0; b < blocks; b++)
        assert_ok(bm_trainer_block(j.trainer, 0.001, &report));
    *rho = bm_trainer_numbers(j.trainer).rho;
    n = bm_trainer_state(j.trainer, states, STATES);
    assert_string_equal(states[n - 1].name, "adam.t");
    assert_int_equal(states[n - 1].whole, 1);
    *t = states[n - 1].x[0];
    close_job(&j);
}

static void test_rho_tends_to_tau_over_one_minus_eta(void **state)
{
    double rho = 0, t = 0;

    run_even(*state, "bmuf.momentum=0.5", 1, &rho, &t);
    assert_true(rho == 6 && t == 6 + 3);
    run_even(*state, "bmuf.momentum=0.5", 2, &rho, &t);
    assert_true(rho == 9 && t == 9 + 6 + 4.5);
    run_even(*state, "bmuf.momentum=0.75", 60, &rho, &t);
    assert_true(near(rho, 6 / (1 - 0.75), 1e-6));
}

/* After 2^24 updates, too, beyond which a float does not count: rho is made of
 * the six updates of each block. */
static void test_rho_grows_after_very_many_updates(void **state)
{
    static const double expected[] = {6, 9, 10.5};
    const char *const settings[] = {"train.strategy=bmuf",
                                    "bmuf.momentum=0.5",
                                    STEADY,
                                    ADAM,
                                    "sgd.local_state=extrapolate",
                                    NULL};
    job j = open_job(*state, even, settings);
    bm_state states[STATES];
    bm_block_report report;
    float *t = NULL;

    start_job(&j);
    t = states[bm_trainer_state(j.trainer, states, STATES) - 1].x;
    *t = 0x1p24F - 8;
    assert_ok(
        bm_trainer_resume(j.trainer, position_of(0), (bm_restart_numbers){0}));
    FOR_EACH (b, expected) {
        assert_ok(bm_trainer_block(j.trainer, 0.001, &report));
        assert_true(bm_trainer_numbers(j.trainer).rho == expected[b]);
        assert_true(*t == 0x1p23F);
    }
    close_job(&j);
}

/* For weights that had a gradient only once. Extrapolated far, v is close to
 * the block's mean gradient, which is 0 but for rounding, and negative where
 * beta2 is rounded down. */
static void test_second_moments_never_fall_below_zero(void **state)
{
    static const char *const settings[] = {
        "train.strategy=bmuf", "bmuf.momentum=0.9",           STEADY, ADAM,
        "sgd.beta2=0.35",      "sgd.local_state=extrapolate", NULL};
    job j = open_job(*state, even, settings);
    bm_state states[STATES];

    start_job(&j);
    for (int b = 0; b < EPOCHS * BLOCKS; b++) {
        bm_block_report report;
        size_t n = 0, found = 0;

        assert_ok(bm_trainer_block(j.trainer, 0.001, &report));
        n = bm_trainer_state(j.trainer, states, STATES);
        for (size_t i = 0; i < n; i++) {
            if (strcmp(states[i].name, "adam.v") != 0)
                continue;
            found += states[i].count;
            for (size_t x = 0; x < states[i].count; x++)
                assert_true(states[i].x[x] >= 0);
        }
        assert_int_equal(found, N);
    }
    close_job(&j);
}

static void test_without_block_momentum_it_is_the_average(void **state)
{
    static result averaged, extrapolated;
    const char *settings[] = {"train.strategy=bmuf", "bmuf.momentum=0", ADAM,
                              "sgd.local_state=average", NULL};

    run_job(*state, ragged, settings, &averaged);
    FOR_EACH (i, settings)
        if (settings[i] != NULL && strstr(settings[i], "local_state") != NULL)
            settings[i] = "sgd.local_state=extrapolate";
    run_job(*state, ragged, settings, &extrapolated);
    assert_memory_equal(&extrapolated, &averaged, sizeof averaged);
}

static void test_extrapolation_needs_adam_and_a_filter(void **state)
{
    static const char *const bad[][4] = {
        {"train.strategy=bmuf", "sgd.local_state=extrapolate", NULL},
        {"train.strategy=average", "sgd.update=adamw",
         "sgd.local_state=extrapolate", NULL},
    };

    FOR_EACH (i, bad) {
        job j = open_job(*state, even, bad[i]);
        bm_task task = {&j.problem,  move,       gradient, read_score,
                        count_steps, epoch_size, NULL,     NULL};

        assert_int_equal(
            bm_trainer_open(&j.trainer, j.config, j.comm, &j.params, &task),
            BM_ERR_CONFIG);
        assert_non_null(strstr(bm_last_error(), "extrapolate"));
        close_job(&j);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_moments_follow_each_policy),
        TEST(test_moments_are_weighted_as_models),
        TEST(test_rho_tends_to_tau_over_one_minus_eta),
        TEST(test_rho_grows_after_very_many_updates),
        TEST(test_second_moments_never_fall_below_zero),
        TEST(test_without_block_momentum_it_is_the_average),
        TEST(test_extrapolation_needs_adam_and_a_filter),
    };
    return RUN_GROUP_MPI("local_state", tests);
}
