/*
 * bmuf tune as users start it: what is searched, what comes out, what is refused.
 */
#include "cli/tune/tuning.h"
#include "core/file/file.h"
#include "tests/cli/tune/searched.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/program.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sizes that the searched one replaces are named where they were given, and a list
 * of states only where there is local momentum. */
static void test_axes_are_those_that_have_an_effect(void **_)
{
    program p;

    (void)_;
    RUN_PROGRAM(&p, "tune", "tune.ini", "--out", "axes", "--trials", "1",
                "--set", "train.epochs=1", "--set", "tune.seeds=1", "--set",
                "block.steps=0", "--set", "block.frames_per_worker=300",
                "--set", "sgd.momentum=0");
    assert_ended(&p, 0);
    assert_said(&p, "  block.frames_per_worker=0 in all trials");
    assert_not_said(&p, "block.frames_total");
    assert_said(&p, "  block.steps ");
    assert_not_said(&p, "sgd.local_state");
    RUN_PROGRAM(&p, "tune", "tune.ini", "--out", "axes2", "--trials", "1",
                "--set", "train.epochs=1", "--set", "tune.seeds=1", "--set",
                "sgd.momentum=0", "--set", "sgd.update=adamw");
    assert_ended(&p, 0);
    assert_said(&p, "  sgd.local_state ");
    assert_not_said(&p, "in all trials");
}

/* The given configuration has neither, the other trial one of them. */
static void test_values_that_are_not_tried_are_named(void **_)
{
    program p;
    char *printed;

    (void)_;
    RUN_PROGRAM(&p, "tune", "tune.ini", "--out", "untried", "--trials", "2",
                "--set", "tune.seeds=1", "--set", "train.epochs=1", "--over",
                "train.strategy=average,ssgd");
    assert_ended(&p, 0);
    printed = slurp(p.out, &(size_t){0});
    assert_says(printed, "no trial had train.strategy = ");
    assert_int_equal(count_of(printed, "no trial had"), 1);
    free(printed);
}

/* With blocks of two steps `reset` is warned of. What the user lists is compared
 * nevertheless, and the model proposes rates. */
static void test_a_warning_of_what_was_asked_for_is_said_once(void **_)
{
    char *printed = NULL, *said = NULL, *rows = NULL;
    program p;

    (void)_;
    RUN_PROGRAM(&p, "tune", "tune.ini", "--out", "warned", "--trials", "9",
                "--set", "tune.seeds=1", "--set", "tune.ahead=1", "--over",
                "train.rate=0.005..0.02", "--over",
                "sgd.local_state=keep,reset");
    assert_ended(&p, 0);
    rows = read_whole("warned", "trials.tsv");
    assert_says(rows, "\tmodel\t");
    assert_says(rows, "sgd.local_state=reset");
    assert_says(rows, "sgd.local_state=keep");
    printed = slurp(p.out, &(size_t){0});
    assert_int_equal(count_of(printed, "no trial had"), 0);
    said = slurp(p.err, &(size_t){0});
    assert_int_equal(count_of(said, "sgd.momentum = 0.9 needs 10 steps"), 1);
    assert_said(&p, "bmuf explain warns of t0");
    free(printed);
    free(said);
    free(rows);
}

static void test_invalid_searches_are_refused(void **_)
{
    static const char *const incomparable[][2] = {
        {"data.dev=dev,train", "on other data"},
        {"data.train=train", "on other data"},
        {"job.seed=1,2,3", "the luckiest seed"},
        {"tune.seeds=1..3", "a setting of the search"},
        {"train.from=a,b", "not in the budget"},
        {"train.keep=1,2", "the same in all trials"},
    };
    static const char *const budgets[] = {"--epochs", "--minutes", "--trials"};
    program p;

    (void)_;
    assert_fails(BMUF("tune", "tune.ini"), 64, "tune needs --out");
    assert_fails(BMUF("tune", "tune.ini", "--out", "x", "--over", "train.rate"),
                 78, "expected SECTION.KEY=LOW..HIGH");
    assert_fails(BMUF("tune", "tune.ini", "--out", "x", "--over",
                      "model.net=linear,lineal"),
                 78, "tune.over: model.net=lineal: ", "model.net", "'lineal'");
    assert_fails(BMUF("tune", "tune.ini", "--out", "x", "--over",
                      "train.strategy=bmuf,bmuff"),
                 78, "tune.over: train.strategy=bmuff: ",
                 "train.strategy: 'bmuff' is not one of");
    assert_fails(BMUF("tune", "tune.ini", "--out", "x", "--over",
                      "job.workers=0", "--over", "train.rate=0.01..0.1"),
                 78, "tune.over: job.workers=0: ");
    FOR_EACH (i, incomparable)
        assert_fails(
            BMUF("tune", "tune.ini", "--out", "x", "--over", incomparable[i][0],
                 "--over", "train.rate=0.01..0.1"),
            78, "tune.over: ", " cannot be searched: ", incomparable[i][1]);
    FOR_EACH (i, budgets)
        assert_fails(BMUF("tune", "tune.ini", "--out", "x", budgets[i], "0.0"),
                     64, budgets[i], "a budget is more than 0");
    assert_fails(BMUF_ON(2, "tune", "tune.ini", "--out", "x"), 64,
                 "tune starts its trials itself: call it without mpirun");
    assert_int_not_equal(access(in_folder("x"), F_OK), 0);
    assert_fails(BMUF("tune", "tune.ini", "--out", "x", "--set", "data.dev="),
                 78, "data.dev");
    TUNE(&p, "one", "--jobs", "2");
    assert_ended(&p, 0);
    assert_fails(BMUF("tune", "tune.ini", "--out", "one", "--trials", "5",
                      "--set", "job.workers=3"),
                 78, "one was begun with other settings",
                 "job.workers: was 2, now 3");
    assert_fails(BMUF("tune", "tune.ini", "--out", "one", "--trials", "5",
                      "--over", "train.rate=0.01..0.1"),
                 78, "tune.over: was not set, now train.rate=0.01..0.1");
    assert_fails(BMUF("tune", "tune.ini", "--out", "train"), 73,
                 "train holds something else");
}

/* The driver of this test has three GPUs, with which nothing can be trained. */
static void test_a_gpu_has_one_trial(void **_)
{
    (void)_;
    assert_fails(
        BMUF("tune", "tune.ini", "--out", "gpus", "--set", "job.device=cuda"),
        69, " 3 at a time", "the configuration as it was given failed: ",
        "once that is fixed, the same command goes on");
    assert_fails(BMUF("tune", "tune.ini", "--out", "pairs", "--set",
                      "job.device=cuda", "-n", "2"),
                 69, " 1 at a time");
    assert_fails(BMUF("tune", "tune.ini", "--out", "crowd", "--set",
                      "job.device=cuda", "--jobs", "5"),
                 69, " 5 at a time");
    assert_fails(BMUF("tune", "tune.ini", "--out", "x", "--hosts", "a",
                      "--hostfile", "b"),
                 64, "--hosts and --hostfile both name hosts");
}

static void test_a_search_without_a_valid_point_is_refused(void **_)
{
    program p;

    (void)_;
    assert_fails(BMUF("tune", "tune.ini", "--out", "x", "-n", "2", "--over",
                      "job.workers=1,2"),
                 78, "2 ranks, but job.workers = 1");
    assert_int_not_equal(access(in_folder("x"), F_OK), 0);
    /* each end is valid with the given value of the other axis */
    TUNE(&p, "none", "--set", "tune.seeds=1", "--set", "train.epochs=1",
         "--over", "bmuf.momentum=0.5..0.9", "--over",
         "bmuf.time_constant=2000..4000");
    assert_ended(&p, 78);
    assert_said(&p, "no settings of the search are valid: ");
    assert_said(&p, "both set eta");
}

/* Before anything is trained, with what makes the setting valid. */
static void test_ranges_against_the_configuration_are_refused(void **_)
{
    (void)_;
    assert_fails(
        BMUF("tune", "tune.ini", "--out", "x", "--over",
             "block.frames_per_worker=2000..64000"),
        78, "tune.over: block.frames_per_worker=2000: ", "a block has one size",
        "--over block.steps=0 makes it valid in all trials");
    assert_fails(BMUF("tune", "tune.ini", "--out", "x", "--set",
                      "bmuf.time_constant=2000", "--over",
                      "bmuf.momentum=0.5..0.9"),
                 78, "tune.over: bmuf.momentum=0.5: ",
                 "--over bmuf.time_constant=0 makes it valid");
    assert_fails(BMUF("tune", "tune.ini", "--out", "x", "-n", "2", "--over",
                      "job.workers=1..8"),
                 78, "tune.over: job.workers=1: ");
    assert_fails(BMUF("tune", "tune.ini", "--out", "x", "--over", "linear:8"),
                 78, "--over linear:8: expected SECTION.KEY=LOW..HIGH");
    assert_int_not_equal(access(in_folder("x"), F_OK), 0);
}

/* An epoch is one block with each of the larger sizes. */
static void test_sizes_that_make_the_same_blocks_are_one_trial(void **_)
{
    program p;

    (void)_;
    RUN_PROGRAM(&p, "tune", "tune.ini", "--out", "sizes", "--trials", "9",
                "--set", "tune.seeds=1", "--set", "train.epochs=1", "--over",
                "block.steps=1,1000,2000,4000");
    assert_ended(&p, 0);
    assert_int_equal(access(in_folder("sizes/trials/t002.ini"), F_OK), 0);
    assert_int_not_equal(access(in_folder("sizes/trials/t003.ini"), F_OK), 0);
}

/* On the command line and in the file that the search keeps. */
static void test_values_with_blanks_are_searched(void **_)
{
    static const char *const nets[] = {"stack:3 linear:8 tanh linear",
                                       "linear:16 tanh linear"};
    char over[200], *rows = NULL;
    program p;

    (void)_;
    snprintf(over, sizeof over, "model.net=%s,%s", nets[0], nets[1]);
    for (int start = 0; start < 2; start++) {
        /* what changes no trial may change */
        RUN_PROGRAM(&p, "tune", "tune.ini", "--out", "nets", "--trials", "5",
                    "--set", "tune.seeds=1", "--set", "train.epochs=1",
                    "--over", over, "--over", "block.workers=0,1@0 2@1",
                    "--set", start == 0 ? "job.threads=1" : "job.threads=2",
                    "--set",
                    start == 0 ? "job.tensorboard=no" : "job.tensorboard=yes");
        assert_ended(&p, 0);
    }
    rows = read_whole("nets", "trials.tsv");
    for (int k = 0; k < 2; k++) {
        char settings[200];

        snprintf(settings, sizeof settings,
                 "\tmodel.net=%s block.workers=1@0 2@1\t", nets[k]);
        assert_says(rows, settings);
    }
    free(rows);
}

/* Folders of copies are of one run, trials have none. */
static void test_trials_have_no_copies_of_checkpoints(void **_)
{
    char copies[PATH_MAX + 64];
    program p;

    (void)_;
    snprintf(copies, sizeof copies, "train.checkpoint_copies=%s",
             in_folder("copies"));
    RUN_PROGRAM(&p, "tune", "tune.ini", "--out", "copied", "--trials", "2",
                "--set", "train.epochs=1", "--set", copies);
    assert_ended(&p, 0);
    assert_int_not_equal(access(in_folder("copies"), F_OK), 0);
}

#define EVAL(epochs, ler)                                                      \
    "{\"event\":\"eval\",\"epoch\":" epochs ",\"data\":\"dev\",\"loss\":1,"    \
    "\"ler\":" ler "}\n"

/* Of four epochs the run had three; the second of them was the best. */
static void test_a_run_that_converged_early_counts_to_its_end(void **_)
{
    bm_assignments none = {.n = 0};
    bm_dataset dev = {.labels = 100};
    bm_tuning t = {.directory = in_folder("early"),
                   .set = {.rungs = 1},
                   .epochs = 4,
                   .first_rung = 4,
                   .trials = &none,
                   .n_trials = 1,
                   .dev = &dev};
    const char *evals = EVAL("1", "0.5") EVAL("2", "0.25") EVAL("3", "0.375");
    char text[2000];
    bm_tune_result r;

    (void)_;
    run_tool((char *[]){"mkdir", "-p", (char *)in_folder("early/trials/t000"),
                        NULL});
    snprintf(text, sizeof text, "%s{\"event\":\"end\",\"reason\":\"%s\"}\n",
             evals, "stopped");
    assert_ok(bm_file_write(in_folder("early/trials/t000/journal.jsonl"), text,
                            strlen(text)));
    assert_false(bm_trial_done(&t, (bm_tune_job){0}, &r));
    snprintf(text, sizeof text, "%s{\"event\":\"end\",\"reason\":\"%s\"}\n",
             evals, "converged");
    assert_ok(bm_file_write(in_folder("early/trials/t000/journal.jsonl"), text,
                            strlen(text)));
    assert_true(bm_trial_done(&t, (bm_tune_job){0}, &r));
    assert_true(r.ler == 0.375);
    t.given.train.keep_best = true;
    assert_true(bm_trial_done(&t, (bm_tune_job){0}, &r));
    assert_true(r.ler == 0.25);
}

/* t000 has the values that it ran with, on a list, in a range or not. */
static void test_the_given_configuration_has_its_own_values(void **_)
{
    char given[FIELDS][64], *rows = NULL;
    program p;

    (void)_;
    RUN_PROGRAM(&p, "tune", "tune.ini", "--out", "own", "--trials", "2",
                "--set", "train.epochs=1", "--over",
                "train.strategy=average,ssgd", "--over", "job.workers=3..4");
    assert_ended(&p, 0);
    row_of("own", "t000", given);
    assert_string_equal(given[11], "bmuf");
    assert_string_equal(given[12], "2");
    rows = slurp(p.out, &(size_t){0});
    assert_says(rows, " bmuf            2\n");
    free(rows);
    rows = read_whole("own/record", "journal.jsonl"); /* how it goes on */
    assert_int_equal(count_of(rows, "\"given_apart\""), 1);
    free(rows);
    rows = read_whole("one/record", "journal.jsonl");
    assert_int_equal(count_of(rows, "\"given_apart\""), 0);
    free(rows);
}

/*
 * Which block size comes to the target first? The network of the file is so slow
 * that an exchange takes longer than computing. Seconds of an epoch are those of
 * bmuf scale, as often as a worker has mini-batches.
 */
static void test_the_time_to_a_target(void **_)
{
    const char network[] = "[link]\nlatency_us = 0\nbandwidth = 0.0001\n";
    char given[FIELDS][64], longer[FIELDS][64], *page = NULL;
    outcome o;
    double frames = 0;
    program p;

    (void)_;
    assert_ok(bm_file_write(in_folder("net.ini"), network, strlen(network)));
    RUN_PROGRAM(&p, "tune", "tune.ini", "--out", "target", "--trials", "4",
                "--target", "99", "--network", "net.ini", "--set",
                "tune.step_ms=1", "--over", "block.steps=2,8");
    assert_ended(&p, 0);
    assert_printed(&p, "Mean time over seeds until 99 % errors on dev");
    page = read_whole("target", "report.html");
    assert_says(page, "least time to the target");
    free(page);

    o = BMUF("scale", "target/trials/t000.ini", "--step-ms", "1", "--network",
             "net.ini", "--workers", "2", "--json");
    assert_code(o, 0);
    frames = number_after(o.out, "frames_per_s\":"); /* of bmuf */
    o = BMUF("explain", "target/trials/t000.ini", "--json");
    assert_code(o, 0);
    row_of("target", "t000", given);
    assert_float_equal(strtod(given[9], NULL), /* of four epochs */
                       4 * number_after(o.out, "\"frames\":") / frames,
                       1e-3 * strtod(given[9], NULL));
    assert_true(strtod(given[10], NULL) > 0);
    assert_true(strtod(given[10], NULL) < strtod(given[9], NULL));
    row_of("target", "t001", longer);
    assert_string_equal(longer[11], "8");
    assert_true(strtod(longer[9], NULL) < 0.5 * strtod(given[9], NULL));

    assert_fails(BMUF("tune", "tune.ini", "--out", "x", "--target", "5",
                      "--network", "tokenring"),
                 64, "network tokenring is unknown");
    assert_int_not_equal(access(in_folder("x"), F_OK), 0); /* nothing began */
}

/* Buckets that are sent while others are computed take less time. */
static void test_the_time_to_a_target_knows_overlapped_exchanges(void **_)
{
    char none[FIELDS][64], bucket[FIELDS][64];
    program p;

    (void)_;
    RUN_PROGRAM(&p, "tune", "tune.ini", "--out", "overlap", "--trials", "3",
                "--target", "99", "--network", "1gbe", "--set",
                "tune.step_ms=1", "--set", "tune.rungs=1", "--set",
                "tune.seeds=1", "--set", "train.epochs=4", "--set",
                "train.strategy=ssgd", "--over", "ssgd.overlap=none,bucket");
    assert_ended(&p, 0);
    row_of("overlap", "t000", none);
    row_of("overlap", "t001", bucket);
    assert_string_equal(none[11], "none");
    assert_string_equal(bucket[11], "bucket");
    assert_true(strtod(bucket[9], NULL) < strtod(none[9], NULL));
}

/* With such rates trials learn nothing: the first model has more than 99 % errors.
 * The given configuration comes to the target. */
static void test_a_finalist_without_a_value_has_none_on_the_page(void **_)
{
    char *page = NULL;
    program p;

    (void)_;
    RUN_PROGRAM(&p, "tune", "tune.ini", "--out", "still", "--trials", "2",
                "--target", "99", "--network", "10gbe", "--set",
                "tune.step_ms=1", "--over", "train.rate=1e-9..1e-8");
    assert_ended(&p, 0);
    assert_printed(&p, "t001   no seed reached it\n");
    page = read_whole("still", "report.html");
    assert_says(page, "<td>t001</td><td>not reached</td><td></td><td></td>"
                      "<td>0</td>");
    free(page);
}

static void test_a_target_that_no_trial_reaches(void **_)
{
    program p;

    (void)_;
    RUN_PROGRAM(&p, "tune", "tune.ini", "--out", "never", "--trials", "2",
                "--target", "0.01", "--set", "train.epochs=1", "--set",
                "tune.step_ms=1");
    assert_ended(&p, 76);
    assert_said(&p, "no finalist came to 0.01 % errors");
}

/* Three seeds of the given configuration and of two finalists are nine runs. */
static void test_a_budget_that_is_too_small(void **_)
{
    program p;

    (void)_;
    assert_fails(BMUF("tune", "tune.ini", "--out", "x", "--epochs", "3",
                      "--set", "train.epochs=4"),
                 78,
                 "3 epochs of all trials together are less than one trial "
                 "of 4; give --epochs 96");
    assert_int_not_equal(access(in_folder("x"), F_OK), 0);
    RUN_PROGRAM(&p, "tune", "tune.ini", "--out", "little", "--epochs", "9",
                "--set", "train.epochs=1", "--set", "tune.seeds=3", "--set",
                "tune.finalists=2");
    assert_ended(&p, 0);
    assert_said(&p, "a budget of 9 epochs leaves nothing to search: the given "
                    "configuration and 2 finalists with 3 seeds each take 9;");
    RUN_PROGRAM(&p, "tune", "tune.ini", "--out", "more", "--epochs", "10",
                "--set", "train.epochs=1", "--set", "tune.seeds=3", "--set",
                "tune.finalists=2");
    assert_ended(&p, 0);
    assert_not_said(&p, "nothing to search");
    /* the given configuration alone takes longer */
    RUN_PROGRAM(&p, "tune", "tune.ini", "--out", "short", "--minutes", "0.0001",
                "--set", "train.epochs=1", "--set", "tune.seeds=1");
    assert_ended(&p, 0);
    assert_int_equal(access(in_folder("short/trials.tsv"), F_OK), 0);
    assert_said(&p, "2 rungs; at most 0.0001 min; ");
}

/* A result of a last rung with these errors. */
#define RESULT(of, with, errors)                                               \
    {                                                                          \
        .job = {.trial = (of), .rung = 1, .seed = (with)}, .ler = (errors)     \
    }

/* Trial 0 is best.ini unless another one is better. The seed that the others were
 * chosen by does not count. Of a trial of which no seed has a value nothing is
 * known. */
static void test_finalists_are_judged_by_their_means(void **_)
{
    bm_tune_result results[] = {RESULT(0, 0, 0.25), RESULT(0, 1, 0.5),
                                RESULT(3, 1, 0.5),  RESULT(3, 2, 0.25),
                                RESULT(5, 1, NAN),  RESULT(5, 2, NAN),
                                RESULT(3, 0, 0.01), RESULT(5, 0, 0.01)};
    bm_tuning t = {.set = {.rungs = 2, .seeds = 2},
                   .results = results,
                   .n_results = sizeof results / sizeof *results};
    bm_finalist list[] = {{.trial = 3}, {.trial = 5}, {.trial = 0}};

    (void)_;
    bm_finalists_judge(&t, list, 3);
    assert_int_equal(list[0].trial, 0);
    assert_int_equal(list[1].trial, 3);
    assert_int_equal(list[2].trial, 5);
    /* Four squares of 0.125 and two degrees of freedom: a deviation of
     * sqrt(0.03125), of the mean of two 0.125. */
    assert_true(fabs(list[0].high - (0.375 + 4.303 * 0.125)) < 1e-9);
    assert_true(list[0].low == 0);
    assert_int_equal(list[2].n, 0);
    assert_true(isnan(list[2].value));
    assert_true(isnan(list[2].low) && isnan(list[2].high));

    results[2].ler = 0.4; /* of trial 3 */
    bm_finalists_judge(&t, list, 3);
    assert_int_equal(list[0].trial, 3);
    /* Two of 0.125 and two of 0.075 from their means. */
    assert_true(fabs(list[0].change + 0.05) < 1e-9);
    assert_true(fabs(list[0].change_half -
                     4.303 * sqrt(2 * 0.125 * 0.125 + 2 * 0.075 * 0.075) /
                         sqrt(2)) < 1e-9);
}

/* The given configuration learns nothing, the others little. */
static void test_doubts_about_the_outcome_are_said(void **_)
{
    program p;

    (void)_;
    RUN_PROGRAM(&p, "tune", "tune.ini", "--out", "doubts", "--trials", "3",
                "--set", "tune.seeds=1", "--set", "train.rate=1e-9", "--over",
                "train.rate=0.01..0.02");
    assert_ended(&p, 0);
    assert_said(&p, "data.dev: dev has ");
    assert_said(&p, "small differences between trials are chance");
    assert_printed(&p, " with one seed, which may be chance: a larger "
                       "tune.seeds tells\n");
    assert_printed(&p, "These errors are of the last epoch; ");
    assert_printed(&p, "More than half of all labels are wrong with the best "
                       "settings, too: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axes_are_those_that_have_an_effect),
        cmocka_unit_test(test_values_that_are_not_tried_are_named),
        cmocka_unit_test(test_a_warning_of_what_was_asked_for_is_said_once),
        cmocka_unit_test(test_invalid_searches_are_refused),
        cmocka_unit_test(test_the_given_configuration_has_its_own_values),
        cmocka_unit_test(test_the_time_to_a_target),
        cmocka_unit_test(test_the_time_to_a_target_knows_overlapped_exchanges),
        cmocka_unit_test(test_a_finalist_without_a_value_has_none_on_the_page),
        cmocka_unit_test(test_a_target_that_no_trial_reaches),
        cmocka_unit_test(test_a_budget_that_is_too_small),
        cmocka_unit_test(test_finalists_are_judged_by_their_means),
        cmocka_unit_test(test_doubts_about_the_outcome_are_said),
        cmocka_unit_test(test_a_gpu_has_one_trial),
        cmocka_unit_test(test_a_search_without_a_valid_point_is_refused),
        cmocka_unit_test(test_ranges_against_the_configuration_are_refused),
        cmocka_unit_test(test_values_with_blanks_are_searched),
        cmocka_unit_test(test_sizes_that_make_the_same_blocks_are_one_trial),
        cmocka_unit_test(test_trials_have_no_copies_of_checkpoints),
        cmocka_unit_test(test_a_run_that_converged_early_counts_to_its_end),
    };

    return cmocka_run_group_tests_name("tune", tests, search_set_up,
                                       digits_tear_down);
}
