/* Ranges of settings: their texts, places and mistakes; the usual ones. */
#include "cli/tune/range.h"
#include "cli/tune/space.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bm_axis axis(const char *text)
{
    bm_axis a;

    assert_ok(bm_axis_parse(&a, text, bm_train_sections()));
    return a;
}

static void assert_at(const bm_axis *a, double u, const char *expected)
{
    char text[BM_AXIS_TEXT];

    bm_axis_text(a, u, text);
    assert_string_equal(text, expected);
    assert_true(fabs(bm_axis_place(a, text) - u) < 0.01);
}

static void test_ranges_have_scales(void **_)
{
    bm_axis rate = axis("train.rate=0.01..1"),
            steps = axis("block.steps=5..500"),
            eta = axis("bmuf.momentum=0.5..0.99:logit"),
            mu = axis("sgd.momentum=0..0.95:linear"),
            frames = axis("block.frames_total=2000..64000:log");

    (void)_;
    assert_at(&rate, 0, "0.01");
    assert_at(&rate, 0.5, "0.1"); /* the geometric mean */
    assert_at(&rate, 1, "1");
    assert_at(&steps, 0.5, "50");
    assert_true(steps.integer && !rate.integer);
    assert_at(&mu, 0.5, "0.475");
    assert_at(&frames, 0.4, "8000"); /* 2000 * 32^0.4 */
    /* Half way in log(eta / (1 - eta)): between 1 and 99 it is 9.95. */
    assert_at(&eta, 0.5, "0.9087");
    assert_at(&eta, 1, "0.9900");
}

static void test_words_are_even(void **_)
{
    bm_axis a = axis("sgd.local_state=reset,keep,average"),
            one = axis("job.workers=16");
    char text[BM_AXIS_TEXT];
    int count[3] = {0};

    (void)_;
    for (int i = 0; i < 300; i++)
        count[(int)bm_axis_value(&a, i / 300.)]++;
    assert_int_equal(count[0], 100);
    assert_int_equal(count[1], 100);
    bm_axis_text(&a, bm_axis_place(&a, "average"), text);
    assert_string_equal(text, "average");
    assert_true(isnan(bm_axis_place(&a, "sum")));
    assert_int_equal(one.n_words, 1);
}

static void test_mistakes_are_explained(void **_)
{
    static const char *const cases[][2] = {
        {"train.rat=0.1..1", "there is no setting train.rat"},
        {"train.rate", "expected SECTION.KEY=LOW..HIGH"},
        {"train.rate=", "expected a range or values"},
        {"block.steps=5,10,5", "5 is there twice"},
        {"train.rate=0.1,0.2,0.10", "0.10 is there twice"},
        {"block.steps=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
         "a list has at most 16 values"},
        {"train.rate=1..0.1", "1 is not below 0.1"},
        {"train.rate=0..1:log", "a log scale begins above 0"},
        {"train.rate=0.1..1:cubic", "unknown scale cubic"},
        {"bmuf.momentum=0.5..2", "is not within [0, 0.9999]"},
        {"sgd.momentum=0..0.9:logit", "is within 0 and 1"},
        {"sgd.local_state=1..2", "the setting is not a number"},
        {"train.rate=0.1,,0.2", "one is empty"},
        {"block.steps=a..b", "of a range LOW..HIGH are numbers"},
    };
    bm_axis a;

    (void)_;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(bm_axis_parse(&a, cases[i][0], bm_train_sections()),
                         BM_ERR_CONFIG);
        if (strstr(bm_last_error(), cases[i][1]) == NULL)
            fail_msg("%s: %s", cases[i][0], bm_last_error());
    }
}

static void test_a_value_may_be_long(void **_)
{
    char text[BM_AXIS_TEXT + 40] = "model.net=linear,";
    size_t n = strlen(text);
    bm_axis a;

    (void)_;
    memset(text + n, 'x', BM_AXIS_TEXT - 1);
    a = axis(text);
    assert_string_equal(a.words[1], text + n);
    text[n + BM_AXIS_TEXT - 1] = 'x';
    assert_int_equal(bm_axis_parse(&a, text, bm_train_sections()),
                     BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "a value has 240 characters; at "
                                            "most 239"));
}

/* Blanks belong to a value. Commas in it, too, where a comma with a blank
 * separates. */
static void test_values_have_blanks_and_commas(void **_)
{
    static const char over[] = " block.workers=0,1@0 4@1 "
                               "model.net=conv:8,3x3 linear, "
                               "pool:all,mean linear  train.rate=0.1..0.2";
    static const char *const texts[] = {"block.workers=0,1@0 4@1",
                                        "model.net=conv:8,3x3 linear, "
                                        "pool:all,mean linear",
                                        "train.rate=0.1..0.2", ""};
    char text[BM_AXIS_MOST_TEXT];
    const char *rest = over;
    bm_axis a;

    (void)_;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        rest = bm_axis_next(rest, text);
        assert_string_equal(text, texts[i]);
    }
    a = axis(texts[0]);
    assert_int_equal(a.n_words, 2);
    assert_string_equal(a.words[1], "1@0 4@1");
    a = axis(texts[1]);
    assert_int_equal(a.n_words, 2);
    assert_string_equal(a.words[0], "conv:8,3x3 linear");
    assert_string_equal(a.words[1], "pool:all,mean linear");
}

/* ---- the usual axes ------------------------------------------------------ */

/* Sixteen workers, blocks of 20 mini-batches of 500 frames each. */
static bm_regime sixteen(void)
{
    return (bm_regime){.workers = 16,
                       .filtered = true,
                       .blocks = true,
                       .momentum = 15. / 16,
                       .rate = 1,
                       .local_momentum = 0.9,
                       .reset = true,
                       .block_frames = 16 * 20 * 500,
                       .epoch_frames = 40 * 16 * 20 * 500,
                       .batch_frames = 500,
                       .epochs = 10};
}

static bool has(const bm_assignments *a, const char *text)
{
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->row[i].text, text) == 0)
            return true;
    return false;
}

static double value(const bm_assignments *a, const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < a->n; i++)
        if (strncmp(a->row[i].text, name, n) == 0 && a->row[i].text[n] == '=')
            return strtod(a->row[i].text + n + 1, NULL);
    return NAN;
}

/* eta = exp(-B / TC) and zeta = gain N (1 - eta), whatever the block is. */
static void test_block_momentum_follows_from_block_and_time_constant(void **_)
{
    bm_regime regime = sixteen();
    bm_settings set = {.train = {.rate = 0.02},
                       .sgd = {.momentum = 0.9},
                       .block = {.frames_total = {.n = 1, .value = {160000}}}};
    bm_space s;
    double x[BM_SEARCH_AXES], eta = 0;
    bm_assignments a;

    (void)_;
    assert_ok(bm_space_new(&s, "", &set, &regime));
    bm_space_given(&s, x);
    bm_space_assign(&s, x, &a);
    assert_true(has(&a, "block.steps=20"));
    assert_true(has(&a, "block.frames_total=0"));
    assert_false(has(&a, "block.frames_per_worker=0")); /* as it is */
    assert_true(has(&a, "bmuf.momentum=0.9375"));
    assert_true(has(&a, "bmuf.rate=1"));
    assert_true(has(&a, "train.rate=0.02"));
    assert_true(has(&a, "sgd.local_state=reset")); /* its default */
    assert_true(has(&a, "block.workers=0"));
    for (size_t k = 0; k < s.n; k++) {
        if (strcmp(s.axis[k].name, "block.steps") == 0)
            x[k] = bm_axis_place(&s.axis[k], "40"); /* twice as long */
        if (strcmp(s.axis[k].name, "block.workers") == 0)
            x[k] = bm_axis_place(&s.axis[k], "4@0 16@1");
    }
    bm_space_assign(&s, x, &a);
    eta = value(&a, "bmuf.momentum");
    assert_true(fabs(eta - 0.9375 * 0.9375) < 1e-4);
    assert_true(fabs(value(&a, "bmuf.rate") / (1 - eta) / 16 - 1) < 0.01);
    assert_true(has(&a, "block.workers=4@0 16@1"));
}

/* What is not on an axis stays what it is; a list without it has no place. */
static void test_the_given_values_are_kept(void **_)
{
    bm_regime regime = sixteen();
    bm_settings set = {.train = {.rate = 0.02}};
    bm_space s;

    (void)_;
    assert_ok(bm_space_new(&s, "train.rate=0.01,0.020 block.steps=5..10", &set,
                           &regime));
    assert_true(s.given[0].there && !s.given[1].there && !s.given_apart);
    assert_string_equal(s.given[0].number, "0.020");
    assert_string_equal(s.given[1].number, "20");
    assert_true(s.given[1].u > 0.99); /* the nearest is 10 */
    assert_ok(bm_space_new(&s, "train.strategy=average,bmuf", &set, &regime));
    assert_true(s.given[0].there && !s.given_apart);
    assert_true(s.given[0].u == 0.75);
    assert_ok(bm_space_new(&s, "train.strategy=average,ssgd", &set, &regime));
    assert_true(!s.given[0].there && s.given_apart);
    assert_string_equal(s.given[0].text, "bmuf"); /* its default */
    assert_ok(bm_space_new(&s, "train.rate=0.01,0.04", &set, &regime));
    assert_true(s.given_apart);
    assert_string_equal(s.given[0].number, "0.02");
}

static void test_a_setting_is_searched_once(void **_)
{
    static const char *const texts[] = {
        "train.rate=0.1..0.2 train.rate=0.3,0.4",
        "train.rate=0.1..0.2 train.rate=0.3",
        "train.rate=0.3 train.rate=0.1..0.2",
    };
    bm_regime regime = sixteen();
    bm_settings set = {.train = {.rate = 0.02}};
    bm_space s;

    (void)_;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(bm_space_new(&s, texts[i], &set, &regime),
                         BM_ERR_CONFIG);
        assert_non_null(
            strstr(bm_last_error(), "tune.over: train.rate is there twice"));
    }
}

static double lowest(const bm_space *s, const char *name)
{
    for (size_t k = 0; k < s->n; k++)
        if (strcmp(s->axis[k].name, name) == 0)
            return s->axis[k].low;
    return NAN;
}

/* The shortest block has 1 / (1 - 0.9) mini-batches of 500 for 16 workers. */
static void test_a_time_constant_is_at_least_the_shortest_block(void **_)
{
    bm_regime regime = sixteen();
    bm_settings set = {.train = {.rate = 0.02}};
    double shortest = 10 * 500 * 16;
    bm_space s;

    (void)_;
    assert_ok(bm_space_new(&s, "", &set, &regime));
    assert_true(
        near(lowest(&s, "time constant"), regime.epoch_frames / 64, 0.01));
    regime.epoch_frames /= 10;
    assert_ok(bm_space_new(&s, "", &set, &regime));
    assert_true(near(lowest(&s, "time constant"), shortest, 0.01));
}

/* Momentum and time constant together are refused. */
static void test_a_given_time_constant_gives_way_to_its_axis(void **_)
{
    bm_regime regime = sixteen();
    bm_settings set = {.train = {.rate = 0.02}};
    bm_config *config = NULL;
    bm_space s;

    (void)_;
    assert_ok(bm_config_new(&config));
    assert_ok(bm_config_set(config, "bmuf.time_constant=20000"));
    assert_ok(bm_space_new(&s, "", &set, &regime));
    assert_false(has(&s.fixed, "bmuf.time_constant=0"));
    set.config = config;
    assert_ok(bm_space_new(&s, "", &set, &regime));
    assert_true(has(&s.fixed, "bmuf.time_constant=0"));
    bm_config_free(config);
}

static void test_a_strategy_has_the_axes_that_count(void **_)
{
    bm_regime regime = sixteen();
    bm_settings set = {.train = {.rate = 0.02}, .sgd = {.momentum = 0.9}};
    bm_space s;

    (void)_;
    assert_ok(bm_space_new(&s, "", &set, &regime));
    assert_int_equal(s.n, 6);
    regime.filtered = false; /* averaging */
    assert_ok(bm_space_new(&s, "", &set, &regime));
    assert_int_equal(s.n, 4);
    set.block.workers = (bm_series){.n = 1, .value = {8}}; /* is kept */
    assert_ok(bm_space_new(&s, "", &set, &regime));
    assert_int_equal(s.n, 3);
    set.block.workers.n = 0;
    set.block.workers.value[0] = 0;
    set.block.overlap = true; /* all workers take part */
    assert_ok(bm_space_new(&s, "", &set, &regime));
    assert_int_equal(s.n, 3);
    set.block.overlap = false;
    regime.workers = 3;
    assert_ok(bm_space_new(&s, "", &set, &regime));
    assert_int_equal(s.n, 3);
    set.sgd.momentum = 0; /* no state that could be kept */
    assert_ok(bm_space_new(&s, "", &set, &regime));
    assert_int_equal(s.n, 2);
    set.sgd.update = "rmsprop"; /* its mean squares */
    assert_ok(bm_space_new(&s, "", &set, &regime));
    assert_int_equal(s.n, 3);
    regime.blocks = false; /* gradients at every step */
    assert_ok(bm_space_new(&s, "", &set, &regime));
    assert_int_equal(s.n, 1);
    assert_string_equal(s.axis[0].name, "train.rate");
    assert_ok(bm_space_new(&s, " train.rate=0.01..0.2  job.workers=16 ", &set,
                           &regime));
    assert_int_equal(s.n, 1);
    assert_true(has(&s.fixed, "job.workers=16"));
    assert_int_equal(bm_space_new(&s, "job.workers=16", &set, &regime),
                     BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "job.workers=16: a single value"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_have_scales),
        cmocka_unit_test(test_words_are_even),
        cmocka_unit_test(test_mistakes_are_explained),
        cmocka_unit_test(test_a_value_may_be_long),
        cmocka_unit_test(test_values_have_blanks_and_commas),
        cmocka_unit_test(
            test_block_momentum_follows_from_block_and_time_constant),
        cmocka_unit_test(test_the_given_values_are_kept),
        cmocka_unit_test(test_a_setting_is_searched_once),
        cmocka_unit_test(test_a_time_constant_is_at_least_the_shortest_block),
        cmocka_unit_test(test_a_given_time_constant_gives_way_to_its_axis),
        cmocka_unit_test(test_a_strategy_has_the_axes_that_count),
    };

    return cmocka_run_group_tests_name("range", tests, NULL, NULL);
}
