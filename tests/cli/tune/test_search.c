/*
 * The search of bmuf tune on functions whose optimum is known: its model, its
 * rungs and promotions, and that its decisions do not depend on the order in
 * which jobs end.
 */
#include "bmuf/filter.h"
#include "cli/tune/gauss.h"
#include "cli/tune/search.h"
#include "core/rng.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the model ----------------------------------------------------------- */

static double wave(const double *x)
{
    return sin(4 * x[0]) + x[1] * x[1];
}

static void test_the_model_interpolates(void **_)
{
    enum { N = 40 };
    double x[2 * N], y[N], mean = 0, near = 0, far = 0;
    bm_rng rng = bm_rng_make(1, "test", 0);
    bm_gauss *g = NULL;

    (void)_;
    for (size_t i = 0; i < N; i++) {
        x[2 * i] = bm_rng_uniform(&rng);
        x[2 * i + 1] = bm_rng_uniform(&rng);
        y[i] = wave(x + 2 * i);
    }
    assert_ok(bm_gauss_fit(&g, N, 2, x, y));
    for (int i = 0; i < 20; i++) {
        double at[2] = {0.1 + 0.8 * bm_rng_uniform(&rng),
                        0.1 + 0.8 * bm_rng_uniform(&rng)};

        bm_gauss_predict(g, at, &mean, &near);
        assert_true(fabs(mean - wave(at)) < 0.05);
    }
    bm_gauss_predict(g, x, &mean, &near);
    bm_gauss_predict(g, (double[]){3, 3}, &mean, &far);
    assert_true(near < 0.1 * far);
    bm_gauss_free(g);
}

/* An axis without effect gets a length of more than the range. */
static void test_the_model_finds_axes_without_effect(void **_)
{
    enum { N = 30 };
    double x[2 * N], y[N];
    bm_rng rng = bm_rng_make(2, "test", 0);
    bm_gauss *g = NULL;

    (void)_;
    for (size_t i = 0; i < N; i++) {
        x[2 * i] = bm_rng_uniform(&rng);
        x[2 * i + 1] = bm_rng_uniform(&rng);
        y[i] = cos(6 * x[2 * i]) + 0.01 * bm_rng_normal(&rng);
    }
    assert_ok(bm_gauss_fit(&g, N, 2, x, y));
    assert_true(bm_gauss_length(g, 1) > 1);
    assert_true(bm_gauss_length(g, 0) < bm_gauss_length(g, 1) / 2);
    bm_gauss_free(g);
}

/* The mean of max(best - f, 0), f normal, as a sum over f. */
static double brute_improvement(double mean, double deviation, double best)
{
    enum { STEPS = 100000 };
    double sum = 0, step = 16.0 / STEPS;

    for (int i = 0; i < STEPS; i++) {
        double z = -8 + (i + 0.5) * step;

        sum += fmax(best - mean - deviation * z, 0) * exp(-z * z / 2) * step;
    }
    return sum / sqrt(2 * acos(-1));
}

static void test_expected_improvement_is_that_of_a_normal(void **_)
{
    double x[] = {0, 0.3, 0.5, 0.9}, y[] = {1, 0.2, 0.3, 2};
    double mean = 0, deviation = 0;
    bm_gauss *g = NULL;

    (void)_;
    assert_ok(bm_gauss_fit(&g, 4, 1, x, y));
    for (int i = 0; i < 10; i++) {
        double at = 0.05 + 0.1 * i;

        bm_gauss_predict(g, &at, &mean, &deviation);
        assert_true(fabs(bm_gauss_improvement(g, &at, 0.2) -
                         brute_improvement(mean, deviation, 0.2)) < 1e-6);
    }
    bm_gauss_free(g);
}

/* ---- rungs --------------------------------------------------------------- */

/* Rungs of 1, 3, 9, .. epochs. */
static long powers(void *self, const double *x, int rung)
{
    (void)self;
    (void)x;
    return lround(pow(3, rung));
}

static bm_grade any(void *self, const double *x)
{
    (void)self;
    (void)x;
    return BM_GOOD;
}

/* With one job at a time: three trials, and the best of them goes on; after the
 * third promotion to the second rung, the best of those. */
static void test_one_of_three_is_promoted(void **_)
{
    static const double scores[] = {5, 3, 4, 2, 6, 7, 1, 8, 9};
    static const bm_search_job expected[] = {
        {0, 0}, {1, 0}, {2, 0}, {1, 1}, {3, 0}, {3, 1}, {4, 0},
        {5, 0}, {6, 0}, {6, 1}, {6, 2}, {7, 0}, {8, 0}};
    bm_search_settings settings = {.seed = 1,
                                   .axes = 1,
                                   .rungs = 3,
                                   .reduction = 3,
                                   .slots = 1,
                                   .epochs = 1000,
                                   .trials = 9};
    bm_search *s = NULL;
    bm_search_job job;
    bm_search_state state;
    size_t rank[9];

    (void)_;
    assert_ok(
        bm_search_new(&s, &settings, (bm_search_space){NULL, powers, any}));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_ok(bm_search_next(s, &job, &state));
        assert_int_equal(state, BM_SEARCH_JOB);
        assert_int_equal(job.trial, expected[i].trial);
        assert_int_equal(job.rung, expected[i].rung);
        assert_ok(bm_search_next(s, &(bm_search_job){0}, &state));
        assert_int_equal(state, BM_SEARCH_WAIT);
        bm_search_tell(s, job, scores[job.trial]);
    }
    assert_ok(bm_search_next(s, &job, &state));
    assert_int_equal(state, BM_SEARCH_END);
    assert_true(bm_search_spent(s) == 9 * 1 + 3 * 2 + 6);
    bm_search_rank(s, rank);
    assert_int_equal(rank[0], 6);
    assert_int_equal(rank[1], 3);
    assert_int_equal(rank[2], 1);
    assert_int_equal(rank[3], 2);
    bm_search_free(s);
}

/* Of a first trial whose point is not its own the model knows nothing: what it
 * expects is the same whatever that trial's score is. */
static void test_a_trial_apart_is_left_out_of_the_model(void **_)
{
    double given = 0.5, at[2] = {0.5, 1}, mean[2], deviation = 0;
    bm_search_settings settings = {.seed = 1,
                                   .axes = 1,
                                   .given = &given,
                                   .given_apart = true,
                                   .rungs = 1,
                                   .reduction = 2,
                                   .slots = 1,
                                   .epochs = 1000,
                                   .trials = 6};

    (void)_;
    for (int k = 0; k < 2; k++) {
        bm_search_state state = BM_SEARCH_JOB;
        bm_search *s = NULL;
        bm_search_job job;
        bm_gauss *g = NULL;

        assert_ok(
            bm_search_new(&s, &settings, (bm_search_space){NULL, powers, any}));
        while (state != BM_SEARCH_END) {
            assert_ok(bm_search_next(s, &job, &state));
            if (state == BM_SEARCH_JOB)
                bm_search_tell(s, job,
                               job.trial == 0 ? 10 - 20 * k
                                              : *bm_search_point(s, job.trial));
        }
        assert_int_equal(bm_search_trials(s), 6);
        assert_ok(bm_search_model(s, &g));
        bm_gauss_predict(g, at, &mean[k], &deviation);
        bm_gauss_free(g);
        bm_search_free(s);
    }
    assert_true(mean[0] == mean[1]);
}

/* Like errors of speech against the learning rate: least at 0.27, and all fall
 * by as much from rung to rung. */
static double like_speech(double x, int rung)
{
    static const double fall[] = {0, 0.56, 0.69};

    return 2 * pow(fabs(x - 0.27), 1.5) - fall[rung];
}

/* That a score is of the first rung says nothing against it: of the trials that the
 * first rung stopped, the model expects the worst to stay so. */
static void test_rungs_are_made_comparable(void **_)
{
    bm_search_settings settings = {.seed = 1,
                                   .axes = 1,
                                   .rungs = 3,
                                   .reduction = 4,
                                   .slots = 2,
                                   .epochs = 60,
                                   .trials = 12};
    bm_search_state state = BM_SEARCH_JOB;
    bm_search *s = NULL;
    bm_search_job job;
    bm_gauss *g = NULL;
    double best[2] = {0, 1}, worst[2] = {0, 1}, good = 0, bad = 0,
           deviation = 0;

    (void)_;
    assert_ok(
        bm_search_new(&s, &settings, (bm_search_space){NULL, powers, any}));
    while (state != BM_SEARCH_END) {
        assert_ok(bm_search_next(s, &job, &state));
        if (state == BM_SEARCH_JOB)
            bm_search_tell(
                s, job, like_speech(*bm_search_point(s, job.trial), job.rung));
    }
    best[0] = worst[0] = *bm_search_point(s, 0);
    for (size_t i = 1; i < bm_search_trials(s); i++) {
        double x = *bm_search_point(s, i);

        if (like_speech(x, 0) < like_speech(best[0], 0))
            best[0] = x;
        if (like_speech(x, 0) > like_speech(worst[0], 0))
            worst[0] = x;
    }
    assert_ok(bm_search_model(s, &g));
    assert_non_null(g);
    bm_gauss_predict(g, best, &good, &deviation);
    bm_gauss_predict(g, worst, &bad, &deviation);
    assert_true(good < bad - 0.05);
    assert_true(fabs(good - like_speech(best[0], 2)) < 0.2);
    bm_gauss_free(g);
    bm_search_free(s);
}

/* Rungs of 3, 9 and 27 epochs. */
static long thirds(void *self, const double *x, int rung)
{
    return 3 * powers(self, x, rung);
}

/* The jobs of a search, in order, and the points of their trials. */
typedef struct handed {
    bm_search_job job[200];
    double x[200];
    size_t n;
    double spent;
} handed;

/* Of two trials side by side, with the results of like_speech. */
static void hand_out_all(double epochs, handed *out)
{
    double given = 0.5;
    bm_search_settings settings = {.seed = 1,
                                   .axes = 1,
                                   .given = &given,
                                   .rungs = 3,
                                   .reduction = 3,
                                   .slots = 2,
                                   .model = true,
                                   .epochs = epochs,
                                   .trials = SIZE_MAX};
    bm_search_state state = BM_SEARCH_JOB;
    bm_search *s = NULL;
    bm_search_job job = {0};

    *out = (handed){0};
    assert_ok(
        bm_search_new(&s, &settings, (bm_search_space){NULL, thirds, any}));
    for (;;) {
        assert_ok(bm_search_next(s, &job, &state));
        if (state != BM_SEARCH_JOB)
            break;
        assert_true(out->n < 200);
        out->job[out->n] = job;
        out->x[out->n] = *bm_search_point(s, job.trial);
        bm_search_tell(s, job, like_speech(out->x[out->n++], job.rung));
    }
    assert_int_equal(state, BM_SEARCH_END);
    out->spent = bm_search_spent(s);
    bm_search_free(s);
}

/* A rung takes 3, 6 and 18 epochs. The given trial, number 0, is trained anyway
 * and takes none of the budget. */
static double price(bm_search_job job)
{
    static const double epochs[] = {3, 6, 18};

    return job.trial == 0 ? 0 : epochs[job.rung];
}

/* A larger budget begins with the jobs of a smaller one, and any budget ends
 * before the first job that it cannot pay: so a finished search can go on. */
static void test_a_larger_budget_continues_a_smaller_one(void **_)
{
    enum { MOST = 240 };
    handed whole, part;

    (void)_;
    hand_out_all(MOST, &whole);
    assert_true(whole.n > 30);
    for (int epochs = 0; epochs < MOST - 18; epochs += 5) {
        double spent = 0;

        hand_out_all(epochs, &part);
        assert_true(part.n < whole.n);
        for (size_t i = 0; i < part.n; i++) {
            assert_int_equal(part.job[i].trial, whole.job[i].trial);
            assert_int_equal(part.job[i].rung, whole.job[i].rung);
            assert_true(part.x[i] == whole.x[i]);
            spent += price(part.job[i]);
        }
        assert_true(part.spent == spent && spent <= epochs);
        assert_true(spent + price(whole.job[part.n]) > epochs);
    }
}

static void test_a_failed_trial_is_never_promoted(void **_)
{
    bm_search_settings settings = {.seed = 1,
                                   .axes = 2,
                                   .rungs = 2,
                                   .reduction = 2,
                                   .slots = 2,
                                   .model = true,
                                   .epochs = 60,
                                   .trials = SIZE_MAX};
    bm_search *s = NULL;
    bm_search_job job;
    bm_search_state state = BM_SEARCH_JOB;

    (void)_;
    assert_ok(
        bm_search_new(&s, &settings, (bm_search_space){NULL, powers, any}));
    for (;;) {
        assert_ok(bm_search_next(s, &job, &state));
        if (state != BM_SEARCH_JOB)
            break;
        assert_false(job.rung == 1 && job.trial % 3 != 0);
        bm_search_tell(s, job,
                       job.trial % 3 == 0 ? 1.0 / (double)(job.trial + 1)
                                          : INFINITY);
    }
    assert_int_equal(state, BM_SEARCH_END);
    assert_true(bm_search_spent(s) <= 60);
    assert_true(bm_search_spent(s) > 55);
    bm_search_free(s);
}

/* self: how often it was asked. */
static bm_grade none(void *self, const double *x)
{
    size_t *asked = self;

    (void)x;
    ++*asked;
    return BM_REFUSED;
}

static void test_a_space_without_points_ends_the_search(void **_)
{
    size_t asked = 0;
    bm_search_settings settings = {.seed = 1,
                                   .axes = 1,
                                   .rungs = 1,
                                   .reduction = 3,
                                   .slots = 4,
                                   .epochs = 10,
                                   .trials = SIZE_MAX};
    bm_search *s = NULL;
    bm_search_job job;
    bm_search_state state;

    (void)_;
    assert_ok(
        bm_search_new(&s, &settings, (bm_search_space){&asked, powers, none}));
    assert_ok(bm_search_next(s, &job, &state));
    assert_int_equal(state, BM_SEARCH_END);
    assert_true(asked > 10);
    assert_int_equal(bm_search_trials(s), 0);
    bm_search_free(s);
}

/* Good below 0.1, like the given point below *self, valid below 0.9. */
static bm_grade in_parts(void *self, const double *x)
{
    const double *as_given = self;

    return x[0] < 0.1         ? BM_GOOD
           : x[0] < *as_given ? BM_AS_GIVEN
           : x[0] < 0.9       ? BM_VALID
                              : BM_REFUSED;
}

/* No point is good. */
static bm_grade never_good(void *self, const double *x)
{
    bm_grade grade = in_parts(self, x);

    return grade == BM_GOOD ? BM_AS_GIVEN : grade;
}

static bm_grade just_valid(void *self, const double *x)
{
    (void)self;
    (void)x;
    return BM_VALID;
}

/* The trials of a search for the least |x - 0.6|, one after the other. *modelled:
 * of these, the points of the model. */
static bm_search *all_trials(bm_grade (*grade)(void *self, const double *x),
                             double *as_given, size_t *modelled)
{
    bm_search_settings settings = {.seed = 1,
                                   .axes = 1,
                                   .rungs = 1,
                                   .reduction = 2,
                                   .slots = 1,
                                   .model = true,
                                   .epochs = 1000,
                                   .trials = 24};
    bm_search_state state = BM_SEARCH_JOB;
    bm_search *s = NULL;
    bm_search_job job;

    assert_ok(bm_search_new(&s, &settings,
                            (bm_search_space){as_given, powers, grade}));
    while (state != BM_SEARCH_END) {
        assert_ok(bm_search_next(s, &job, &state));
        if (state == BM_SEARCH_JOB)
            bm_search_tell(s, job, fabs(*bm_search_point(s, job.trial) - 0.6));
    }
    *modelled = 0;
    for (size_t i = 0; i < bm_search_trials(s); i++)
        *modelled += bm_search_origin_of(s, i) == BM_ORIGIN_MODEL;
    assert_int_equal(bm_search_trials(s), 24);
    return s;
}

/* After four results, three of four points, whatever the best grade is. */
static void test_the_model_proposes_points_of_any_grade(void **_)
{
    static bm_grade (*const grades[])(void *self, const double *x) = {
        in_parts, never_good, just_valid, any};
    static const double below[] = {0.1, 0.4, 1, 1};
    double as_given = 0.4;

    (void)_;
    for (size_t k = 0; k < sizeof grades / sizeof *grades; k++) {
        size_t modelled = 0;
        bm_search *s = all_trials(grades[k], &as_given, &modelled);

        assert_int_equal(modelled, 15);
        for (size_t i = 0; i < bm_search_trials(s); i++)
            assert_true(*bm_search_point(s, i) < below[k]);
        bm_search_free(s);
    }
}

/* Without a good point the sequence is the same as if all were good. */
static void test_the_sequence_leaves_out_no_point_of_the_best_grade(void **_)
{
    double x[2][8];

    (void)_;
    for (size_t k = 0; k < 2; k++) {
        bm_search_settings settings = {.seed = 1,
                                       .axes = 1,
                                       .rungs = 1,
                                       .reduction = 2,
                                       .slots = 1,
                                       .epochs = 1000,
                                       .trials = 8};
        bm_search_state state = BM_SEARCH_JOB;
        bm_search *s = NULL;
        bm_search_job job;

        assert_ok(bm_search_new(
            &s, &settings,
            (bm_search_space){NULL, powers, k == 0 ? any : just_valid}));
        while (state != BM_SEARCH_END) {
            assert_ok(bm_search_next(s, &job, &state));
            if (state != BM_SEARCH_JOB)
                continue;
            x[k][job.trial] = *bm_search_point(s, job.trial);
            bm_search_tell(s, job, 1);
        }
        bm_search_free(s);
    }
    assert_memory_equal(x[0], x[1], sizeof x[0]);
}

/* ---- a known optimum ----------------------------------------------------- */

/*
 * Classical block momentum on a quadratic of two curvatures is Polyak's heavy
 * ball: a block removes a fraction c of the distance, G = -c start. The error
 * falls by the factor sqrt(eta) per block at best, with
 *
 *     zeta = (2 / (sqrt(c1) + sqrt(c2)))^2
 *     eta  = ((sqrt(c2) - sqrt(c1)) / (sqrt(c2) + sqrt(c1)))^2
 *
 * (Polyak 1964.) With c = 0.02 and 0.9 that is zeta 3.364 and eta 0.5465.
 */
static const double curvature[] = {0.02, 0.9};

static double best_zeta(void)
{
    return pow(2 / (sqrt(curvature[0]) + sqrt(curvature[1])), 2);
}

static double best_eta(void)
{
    return pow((sqrt(curvature[1]) - sqrt(curvature[0])) /
                   (sqrt(curvature[1]) + sqrt(curvature[0])),
               2);
}

static bm_filter filter_at(const double *x)
{
    bm_filter f = {0};

    f.rate = 0.2 * pow(50, x[0]);        /* 0.2 .. 10, log */
    f.momentum = 1 - pow(10, -2 * x[1]); /* 0 .. 0.99 */
    return f;
}

/* The logarithm of what is left of the distance, per block. */
static double fall(const bm_filter *f, long blocks)
{
    float w[2] = {1, 1}, delta[2] = {0, 0}, start[2] = {1, 1};

    for (long b = 0; b < blocks; b++) {
        float g[2] = {-(float)curvature[0] * start[0],
                      -(float)curvature[1] * start[1]};

        bm_filter_block(f, 2, g, w, delta, start);
        if (!(hypot((double)w[0], (double)w[1]) < 1e15))
            return INFINITY;
    }
    return log(fmax(hypot((double)w[0], (double)w[1]), 1e-35) / sqrt(2)) /
           (double)blocks;
}

/* The logarithm of the factor by which the error falls per block in the long
 * run: of the largest root of  r^2 - (1 + eta - zeta c) r + eta. */
static double long_run(const bm_filter *f)
{
    double most = 0;

    for (int k = 0; k < 2; k++) {
        double half = (1 + f->momentum - f->rate * curvature[k]) / 2;
        double under = half * half - f->momentum;
        double root = under > 0 ? fabs(half) + sqrt(under) : sqrt(f->momentum);

        most = fmax(most, root);
    }
    return log(most);
}

static long blocks_of(void *self, const double *x, int rung)
{
    static const long blocks[] = {10, 30, 90};

    (void)self;
    (void)x;
    return blocks[rung];
}

/* What a search does: jobs that run side by side end in any order. */
typedef struct course {
    bm_search *s;
    uint64_t digest; /* of all points and rungs, in their order */
} course;

/* The more blocks, the less noise. */
static double outcome_of(const course *c, bm_search_job job)
{
    bm_filter f = filter_at(bm_search_point(c->s, job.trial));
    bm_rng rng = bm_rng_make(7, "noise", job.trial * 8 + (size_t)job.rung);

    return long_run(&f) +
           0.5 / (double)blocks_of(NULL, NULL, job.rung) * bm_rng_normal(&rng);
}

static void run_course(course *c, const bm_search_settings *settings,
                       size_t side_by_side, uint64_t order)
{
    bm_search_job running[64];
    size_t n = 0;
    bm_rng rng = bm_rng_make(order, "order", 0);

    assert_ok(bm_search_new(&c->s, settings,
                            (bm_search_space){NULL, blocks_of, any}));
    for (;;) {
        bm_search_state state = BM_SEARCH_WAIT;
        bm_search_job job;
        size_t k = 0;

        if (n < side_by_side) {
            assert_ok(bm_search_next(c->s, &job, &state));
            if (state == BM_SEARCH_JOB) {
                double x = bm_search_point(c->s, job.trial)[0];

                c->digest = bm_rng_fork(c->digest ^ (uint64_t)(1e15 * x),
                                        job.trial * 8 + (size_t)job.rung);
                running[n++] = job;
                continue;
            }
        }
        if (n == 0)
            break;
        k = bm_rng_below(&rng, n);
        bm_search_tell(c->s, running[k], outcome_of(c, running[k]));
        running[k] = running[--n];
    }
}

static bm_search_settings settings_of(uint64_t seed, bool model)
{
    return (bm_search_settings){.seed = seed,
                                .axes = 2,
                                .rungs = 3,
                                .reduction = 3,
                                .slots = 4,
                                .model = model,
                                .epochs = 1500,
                                .trials = SIZE_MAX};
}

static void test_decisions_do_not_depend_on_the_order_of_ends(void **_)
{
    bm_search_settings settings = settings_of(3, true);
    uint64_t first = 0;

    (void)_;
    for (size_t k = 0; k < 6; k++) {
        static const size_t side_by_side[] = {1, 2, 3, 4, 4, 64};
        course c = {0};

        run_course(&c, &settings, side_by_side[k], k);
        if (k == 0)
            first = c.digest;
        assert_true(c.digest == first);
        assert_true(bm_search_trials(c.s) > 20);
        bm_search_free(c.s);
    }
}

/* Per block, how much slower the best settings found are than the best. */
static double regret(uint64_t seed, bool model, size_t *trials)
{
    bm_search_settings settings = settings_of(seed, model);
    course c = {0};
    size_t rank[1000];
    bm_filter f;

    run_course(&c, &settings, 4, seed);
    *trials = bm_search_trials(c.s);
    assert_true(*trials < 1000);
    bm_search_rank(c.s, rank);
    f = filter_at(bm_search_point(c.s, rank[0]));
    bm_search_free(c.s);
    return long_run(&f) - 0.5 * log(best_eta());
}

static void test_the_formula_of_polyak_is_the_optimum(void **_)
{
    bm_filter best = {.momentum = best_eta(), .rate = best_zeta()};

    (void)_;
    assert_true(fabs(long_run(&best) - 0.5 * log(best_eta())) < 1e-6);
    assert_true(fabs(fall(&best, 90) - 0.5 * log(best_eta())) < 0.1);
    for (int k = 0; k < 4; k++) {
        bm_filter other = best;

        other.rate *= k == 0 ? 1.1 : k == 1 ? 0.9 : 1;
        other.momentum *= k == 2 ? 1.1 : k == 3 ? 0.9 : 1;
        assert_true(long_run(&other) > long_run(&best));
    }
}

/* With 1500 blocks, fewer than 17 whole trials. At the optimum the error falls
 * by 0.302 per block, with averaging, eta 0 and zeta 1, by 0.020. */
static void test_the_optimum_of_a_quadratic_is_found(void **_)
{
    enum { SEEDS = 30 };
    double sum = 0, by_sequence = 0;
    size_t trials = 0;

    (void)_;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        sum += regret(seed, true, &trials) / SEEDS;
        assert_true(trials < 100);
        by_sequence += regret(seed, false, &trials) / SEEDS;
    }
    print_message("mean regret %.4f, of the sequence alone %.4f\n", sum,
                  by_sequence);
    assert_true(sum < 0.1);
    assert_true(sum < 0.9 * by_sequence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_model_interpolates),
        cmocka_unit_test(test_the_model_finds_axes_without_effect),
        cmocka_unit_test(test_expected_improvement_is_that_of_a_normal),
        cmocka_unit_test(test_one_of_three_is_promoted),
        cmocka_unit_test(test_a_trial_apart_is_left_out_of_the_model),
        cmocka_unit_test(test_rungs_are_made_comparable),
        cmocka_unit_test(test_a_larger_budget_continues_a_smaller_one),
        cmocka_unit_test(test_a_failed_trial_is_never_promoted),
        cmocka_unit_test(test_a_space_without_points_ends_the_search),
        cmocka_unit_test(test_the_model_proposes_points_of_any_grade),
        cmocka_unit_test(
            test_the_sequence_leaves_out_no_point_of_the_best_grade),
        cmocka_unit_test(test_decisions_do_not_depend_on_the_order_of_ends),
        cmocka_unit_test(test_the_formula_of_polyak_is_the_optimum),
        cmocka_unit_test(test_the_optimum_of_a_quadratic_is_found),
    };

    return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
