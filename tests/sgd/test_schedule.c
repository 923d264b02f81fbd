/* Learning rates against sequences computed by hand. */
#include "sgd/schedule.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bm_schedule_settings settings(const char *kind)
{
    return (bm_schedule_settings){
        .kind = kind, .decay = 0.5, .threshold = 0.01, .least = 1e-6};
}

/* Evaluates one error after the other, in eighths, which are below newbob's
 * plateau; the rate must then be `rates`. */
static void check_rates(bm_schedule_settings set, const double *errors,
                        const double *rates, size_t n)
{
    bm_schedule s = bm_schedule_make(&set, 8, 4);

    for (size_t i = 0; i < n; i++) {
        assert_false(bm_schedule_evaluated(&s, errors[i] / 8));
        if (bm_schedule_rate(&s, (double)i) != rates[i])
            fail_msg("after evaluation %zu: %g, not %g", i,
                     bm_schedule_rate(&s, (double)i), rates[i]);
    }
}

#define CHECK_RATES(set, errors, rates)                                        \
    check_rates(set, errors, rates, sizeof(errors) / sizeof((errors)[0]))

static void test_constant_does_not_change(void **state)
{
    static const double errors[] = {1, 1, 2, 3}, rates[] = {8, 8, 8, 8};

    (void)state;
    CHECK_RATES(settings("constant"), errors, rates);
}

static void test_cosine_falls_to_zero_at_the_last_epoch(void **state)
{
    bm_schedule_settings set = settings("cosine");
    bm_schedule s = bm_schedule_make(&set, 8, 12);

    (void)state;
    assert_true(bm_schedule_rate(&s, 0) == 8);
    assert_true(near(bm_schedule_rate(&s, 4), 6, 1e-15));
    assert_true(near(bm_schedule_rate(&s, 6), 4, 1e-15));
    assert_true(near(bm_schedule_rate(&s, 8), 2, 1e-14));
    assert_true(bm_schedule_rate(&s, 12) == 0);
    assert_true(bm_schedule_rate(&s, 13) == 0);
}

/* torch.optim.lr_scheduler.OneCycleLR(max_lr=8, total_steps=11, pct_start=4/11)
 * of PyTorch 2.15. */
static void test_onecycle_is_that_of_pytorch(void **state)
{
    static const double expected[] = {
        0.32000000000000028,   2.2400000000000002,
        6.0799999999999992,    8,
        7.6038770561077893,    6.4939652315981045,
        4.8900961754903145,    3.109935824509686,
        1.5060667684018958,    0.39615494389221029,
        3.1999999999999999e-05};
    bm_schedule_settings set = settings("onecycle");
    bm_schedule s;

    (void)state;
    set.warmup = 3;
    s = bm_schedule_make(&set, 8, 10);
    FOR_EACH (i, expected)
        assert_true(
            near(bm_schedule_rate(&s, (double)i) / expected[i], 1, 1e-10));
    assert_true(near(bm_schedule_rate(&s, 12), 3.2e-5, 1e-15));
    set.warmup = 0; /* the same three tenths */
    s = bm_schedule_make(&set, 8, 10);
    assert_true(near(bm_schedule_rate(&s, 3), 8, 1e-14));
    assert_true(near(bm_schedule_rate(&s, 1), expected[1], 1e-14));
    set.warmup = 20; /* longer than the run */
    s = bm_schedule_make(&set, 8, 10);
    assert_true(near(bm_schedule_rate(&s, 10), 8 * 0.52, 1e-14));
}

static void test_noam_falls_with_the_root_of_epochs(void **state)
{
    bm_schedule_settings set = settings("noam");
    bm_schedule s;

    (void)state;
    set.warmup = 2;
    s = bm_schedule_make(&set, 8, 4);
    assert_true(near(bm_schedule_rate(&s, 0), 0.8, 1e-15));
    assert_true(near(bm_schedule_rate(&s, 1), 8 * 0.55, 1e-15));
    assert_true(bm_schedule_rate(&s, 2) == 8);
    assert_true(near(bm_schedule_rate(&s, 4), 8 / sqrt(2), 1e-14));
    assert_true(near(bm_schedule_rate(&s, 32), 2, 1e-14));
}

static void test_exponential_falls_within_epochs_too(void **state)
{
    bm_schedule_settings set = settings("exponential");
    bm_schedule s = bm_schedule_make(&set, 8, 4);

    (void)state;
    for (int evaluated = 0; evaluated < 2; evaluated++) {
        assert_true(bm_schedule_rate(&s, 0) == 8);
        assert_true(near(bm_schedule_rate(&s, 0.5), 8 * sqrt(0.5), 1e-15));
        assert_true(bm_schedule_rate(&s, 3) == 1);
        assert_false(bm_schedule_evaluated(&s, 1)); /* looks at no error */
    }
}

static void test_newbob_decays_without_enough_improvement(void **state)
{
    /* (new - old) / new: -1, -0.0101, -0.0050, +0.0099, -0.0101 */
    static const double errors[] = {2, 1, 0.99, 0.985, 0.995, 0.985};
    static const double rates[] = {8, 8, 8, 4, 2, 2};

    (void)state;
    CHECK_RATES(settings("newbob"), errors, rates);
}

/* CTC says blank everywhere at first; its error is then near 1. */
static void test_newbob_waits_until_the_plateau_of_blanks_is_left(void **state)
{
    static const double errors[] = {8, 8, 8.2, 7.6, 7.6, 6.4, 6.4, 7, 6};
    static const double rates[] = {8, 8, 8, 8, 8, 8, 4, 2, 2};

    (void)state;
    CHECK_RATES(settings("newbob"), errors, rates);
}

static void test_the_threshold_is_relative_to_the_new_error(void **state)
{
    /* 1 -> 0.8: -0.25 of the new, -0.2 of the old. */
    static const double errors[] = {1, 0.8}, slow[] = {8, 4}, fast[] = {8, 8};
    bm_schedule_settings set = settings("newbob");

    (void)state;
    set.threshold = 0.26;
    CHECK_RATES(set, errors, slow);
    set.threshold = 0.24;
    CHECK_RATES(set, errors, fast);
}

static void test_patience_delays_a_decay(void **state)
{
    static const double errors[] = {4, 4, 4, 2, 2, 3, 4, 5, 6, 7};
    static const double rates[] = {8, 8, 8, 8, 8, 8, 4, 4, 4, 2};
    bm_schedule_settings set = settings("newbob");

    (void)state;
    set.patience = 2;
    CHECK_RATES(set, errors, rates);
}

/* Eesen's train_ctc_parallel.sh, whose accuracies of 50, 60, 60.3, 63 and 64 %
 * rise by 10, 0.3, 2.7 and 1: below its start_halving_inc of 0.5 once, and the
 * rate is halved from then on. 0.5 of 40 % is 0.0125. */
static void test_a_ramp_decays_at_each_evaluation_behind_the_first(void **_)
{
    static const double errors[] = {4, 3.2, 3.176, 2.96, 2.88};
    static const double once[] = {8, 8, 4, 4, 4}, ramp[] = {8, 8, 4, 2, 1};
    static const double slow[] = {4, 4, 4, 4, 2}, late[] = {8, 8, 8, 4, 2};
    bm_schedule_settings set = settings("newbob");

    (void)_;
    set.threshold = 0.0125;
    CHECK_RATES(set, errors, once);
    set.ramp = true;
    CHECK_RATES(set, errors, ramp);
    set.patience = 2; /* up to the first decay only */
    CHECK_RATES(set, slow, late);
}

static void test_an_error_of_zero_is_the_best(void **state)
{
    /* 0 again is no improvement, as 1 after 1 is none. */
    static const double errors[] = {1, 0, 0, 0}, rates[] = {8, 8, 4, 2};
    static const double plain[] = {8, 8, 8, 8};
    bm_schedule_settings set = settings("newbob");

    (void)state;
    CHECK_RATES(set, errors, rates);
    set.threshold = 0; /* 0 > -0 is false: only a larger error decays */
    CHECK_RATES(set, errors, plain);
}

static void test_an_error_that_is_not_finite_is_not_kept(void **state)
{
    static const double errors[] = {2, NAN, 1, INFINITY, 0.5};
    static const double rates[] = {8, 4, 4, 2, 2};

    (void)state;
    CHECK_RATES(settings("newbob"), errors, rates);
}

static void test_training_ends_below_the_least_rate(void **state)
{
    bm_schedule_settings set = settings("newbob");
    bm_schedule s;

    (void)state;
    set.least = 0.25;
    s = bm_schedule_make(&set, 1000, 4);
    assert_false(bm_schedule_evaluated(&s, 0.5));
    assert_false(bm_schedule_evaluated(&s, 0.5)); /* 1/2 */
    assert_false(bm_schedule_evaluated(&s, 0.5)); /* 1/4: not below */
    assert_true(bm_schedule_evaluated(&s, 0.5));
    assert_true(s.state.best == 0.5 && s.state.last == 0.5);
}

static void test_warm_up_grows_from_a_tenth(void **state)
{
    static const char *const kinds[] = {"constant", "newbob"};

    (void)state;
    FOR_EACH (i, kinds) {
        bm_schedule_settings set = settings(kinds[i]);
        bm_schedule s;

        set.warmup = 2;
        s = bm_schedule_make(&set, 8, 4);
        assert_true(near(bm_schedule_rate(&s, 0), 0.8, 1e-15));
        assert_true(near(bm_schedule_rate(&s, 1), 8 * 0.55, 1e-15));
        assert_true(bm_schedule_rate(&s, 2) == 8);
        assert_true(bm_schedule_rate(&s, 30) == 8);
    }
}

/* Errors in eighths; training ends at the last of them, and not before. */
static void check_end(const char *kind, const double *errors, size_t n)
{
    bm_schedule_settings set = settings(kind);
    bm_schedule s;

    set.stop_after = 3;
    s = bm_schedule_make(&set, 8, 1000);
    for (size_t i = 0; i < n; i++)
        if (bm_schedule_evaluated(&s, errors[i] / 8) != (i + 1 == n))
            fail_msg("%s: after evaluation %zu of %zu", kind, i + 1, n);
}

#define CHECK_END(kind, ...)                                                   \
    check_end(kind, (const double[]){__VA_ARGS__},                             \
              sizeof((double[]){__VA_ARGS__}) / sizeof(double))

static void test_training_stops_without_a_new_best_error(void **state)
{
    static const char *const kinds[] = {"cosine", "onecycle", "constant"};

    (void)state;
    FOR_EACH (i, kinds) {
        CHECK_END(kinds[i], 2, 2, 2, 2);
        CHECK_END(kinds[i], 4, 3, 3.5, 3.2, 2.99, 3, 2.995, NAN);
        /* The plateau of blanks is no reason to stop: 0.8 of 8 is 6.4. */
        CHECK_END(kinds[i], 8, 8, 8, 8, 8, 7, 7, 7, 7, 6.4, 7, 7, 7);
    }
}

static void test_a_restored_state_continues_alike(void **state)
{
    static const double errors[] = {4, 4, 3, 3, 3, 2, 2, 2, 2, 1, 1};
    enum { ERRORS = sizeof errors / sizeof errors[0] };
    bm_schedule_settings set = settings("newbob");

    (void)state;
    set.patience = 1;
    for (int k = 0; k < 2 * ERRORS; k++) {
        int stop = k / 2;
        bm_schedule straight, resumed;

        set.ramp = k % 2 == 1;
        straight = resumed = bm_schedule_make(&set, 8, 4);
        for (int i = 0; i < ERRORS; i++) {
            if (i == stop) {
                bm_schedule_state kept = resumed.state;

                resumed = bm_schedule_make(&set, 8, 4);
                resumed.state = kept;
            }
            bm_schedule_evaluated(&straight, errors[i] / 8);
            bm_schedule_evaluated(&resumed, errors[i] / 8);
            assert_true(bm_schedule_rate(&straight, i) ==
                        bm_schedule_rate(&resumed, i));
        }
        assert_true(straight.state.best == 0.125 &&
                    resumed.state.best == 0.125);
    }
}

/* The words of the option `kind`. */
static const char *all_kinds(void)
{
    const bm_option *o = bm_schedule_options;

    while (strcmp(o->key, "kind") != 0)
        o++;
    return o->unit;
}

/* With a rate of 8 and four epochs: the first rate, and whether rates depend on the
 * number of epochs. */
static const struct known {
    const char *kind;
    double first;
    bool spans;
} known[] = {
    {"cosine", 8, true},    {"onecycle", 0.32, true},  {"noam", 8, false},
    {"constant", 8, false}, {"exponential", 8, false}, {"newbob", 8, false},
};

static const struct known *find(const char *kind)
{
    FOR_EACH (i, known)
        if (strcmp(known[i].kind, kind) == 0)
            return &known[i];
    fail_msg("add schedule.kind = %s to `known` of this test", kind);
    return NULL;
}

static void check_kind(const char *kind)
{
    const struct known *k = find(kind);
    bm_config *config = NULL;
    bm_schedule_settings set = {0};
    bm_schedule s;
    char assignment[64];

    print_message("schedule.kind=%s\n", kind);
    snprintf(assignment, sizeof assignment, "schedule.kind=%s", kind);
    assert_ok(bm_config_new(&config));
    assert_ok(bm_config_set(config, assignment));
    assert_ok(bm_config_fill(config, "schedule", bm_schedule_options, &set));
    s = bm_schedule_make(&set, 8, 4);
    assert_true(near(bm_schedule_rate(&s, 0), k->first, 1e-15));
    assert_int_equal(bm_schedule_spans_run(&set), k->spans);
    for (int i = 0; i <= 40; i++) {
        double rate = bm_schedule_rate(&s, i / 10.0);

        assert_true(rate >= 0 && rate <= 8 * (1 + 1e-15));
    }
    bm_config_free(config);
}

static void test_every_kind_of_the_option_is_a_schedule(void **state)
{
    char words[200], *rest = words;

    (void)state;
    snprintf(words, sizeof words, "%s", all_kinds());
    for (const char *kind = NULL; (kind = strtok_r(rest, " ", &rest)) != NULL;)
        check_kind(kind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant_does_not_change),
        cmocka_unit_test(test_cosine_falls_to_zero_at_the_last_epoch),
        cmocka_unit_test(test_onecycle_is_that_of_pytorch),
        cmocka_unit_test(test_noam_falls_with_the_root_of_epochs),
        cmocka_unit_test(test_exponential_falls_within_epochs_too),
        cmocka_unit_test(test_newbob_decays_without_enough_improvement),
        cmocka_unit_test(test_newbob_waits_until_the_plateau_of_blanks_is_left),
        cmocka_unit_test(test_the_threshold_is_relative_to_the_new_error),
        cmocka_unit_test(test_patience_delays_a_decay),
        cmocka_unit_test(
            test_a_ramp_decays_at_each_evaluation_behind_the_first),
        cmocka_unit_test(test_an_error_of_zero_is_the_best),
        cmocka_unit_test(test_an_error_that_is_not_finite_is_not_kept),
        cmocka_unit_test(test_training_ends_below_the_least_rate),
        cmocka_unit_test(test_warm_up_grows_from_a_tenth),
        cmocka_unit_test(test_training_stops_without_a_new_best_error),
        cmocka_unit_test(test_a_restored_state_continues_alike),
        cmocka_unit_test(test_every_kind_of_the_option_is_a_schedule),
    };
    return RUN_GROUP("schedule", tests);
}
