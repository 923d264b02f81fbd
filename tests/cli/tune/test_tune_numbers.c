/*
 * The numbers of a search: axes and times to a target of a configuration whose
 * workers change in training (VALUE@EPOCH), and what report.html says.
 */
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

static const char configuration[] = "[data]\n"
                                    "train = train\n"
                                    "dev = dev\n"
                                    "[model]\n"
                                    "net = stack:3 linear:16 tanh linear\n"
                                    "[train]\n"
                                    "epochs = 8\n"
                                    "rate = 0.01\n"
                                    "[job]\n"
                                    "workers = 4\n"
                                    "device = cpu\n"
                                    "[batch]\n"
                                    "sequences = 1\n"
                                    "[block]\n"
                                    "steps = 5\n"
                                    "workers = 1@0 4@1\n"
                                    "[tune]\n"
                                    "rungs = 2\n"
                                    "seeds = 1\n"
                                    "finalists = 1\n"
                                    "step_ms = 100\n";

static int set_up(void **state)
{
    if (digits_set_up(state) != 0)
        return -1;
    write_text("series.ini", configuration);
    return 0;
}

static double number_of(const char *directory, const char *trial,
                        const char *rung, const char *column)
{
    char text[64];

    field_of(directory, trial, rung, column, text);
    return strtod(text, NULL);
}

/* The usual axes are those of all four workers; only block.workers is not
 * searched. The first epoch takes as long as four of the others. */
static void test_workers_that_change(void **_)
{
    char steps[64];
    double epochs = 0, ratio = 0;
    program p;

    (void)_;
    RUN_PROGRAM(&p, "tune", "series.ini", "--out", "workers", "--trials", "3",
                "--target", "99", "--network", "nvlink", "--set",
                "schedule.kind=constant");
    assert_ended(&p, 0);
    field_of("workers", "t000", "2", "block.steps", steps);
    assert_string_equal(steps, "5");
    assert_true(number_of("workers", "t000", "2", "time constant") > 0);
    /* zeta / (1 - eta) / N: auto is 1 */
    assert_true(fabs(number_of("workers", "t000", "2", "gain") - 1) < 1e-6);
    field_of("workers", "t000", "2", "block.workers", steps);
    assert_string_equal(steps, ""); /* no such axis */

    epochs = number_of("workers", "t001", "1", "epochs");
    assert_true(epochs >= 2 && epochs < 8);
    ratio = number_of("workers", "t001", "1", "cluster_s") /
            number_of("workers", "t001", "2", "cluster_s");
    assert_float_equal(ratio, (4 + epochs - 1) / (4 + 7), 0.03);
}

/* Trials that trials.tsv has with the last rung, with whatever seeds. */
static size_t whole_trials(const char *directory)
{
    char *text = read_whole(directory, "trials.tsv"), *rest = NULL;
    char row[FIELDS][64];
    bool whole[100] = {false};
    size_t n = 0;

    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        size_t trial = 0;

        split_row(line, row);
        if (strcmp(row[2], "2") != 0 || sscanf(row[0], "t%zu", &trial) != 1)
            continue;
        assert_true(trial < 100);
        n += !whole[trial];
        whole[trial] = true;
    }
    free(text);
    return n;
}

/* The line of progress has two points for each of these, less one, whatever other
 * seeds of the finalists came to. */
static void test_the_page_of_a_search(void **_)
{
    json_t *dev = NULL;
    char *page = NULL, *printed = NULL, *better = NULL, words[300];
    const char *path = NULL;
    outcome o;
    program p;

    (void)_;
    RUN_PROGRAM(&p, "tune", "series.ini", "--out", "page", "--trials", "7",
                "--set", "tune.seeds=3", "--set", "train.epochs=4");
    assert_ended(&p, 0);
    page = read_whole("page", "report.html");
    assert_says(page, "Net stack:3 linear:16 tanh linear; 4 epochs for a whole "
                      "trial, in all at most 7 trials; bmuf ");
    o = BMUF("info", "dev", "--json");
    dev = parse_json(o.out);
    snprintf(words, sizeof words,
             "data.dev is dev, with %.0f sequences and %.0f labels.",
             number(dev, "sequences"), number(dev, "labels"));
    assert_says(page, words);
    json_decref(dev);

    path = strstr(page, "<title>best error on dev</title>");
    assert_non_null(path);
    path = strstr(path, "class='l0' d='M");
    assert_non_null(path);
    snprintf(words, sizeof words, "%.*s", (int)strcspn(path, "/"), path);
    assert_int_equal(count_of(words, "L"), 2 * whole_trials("page") - 2);

    printed = slurp(p.out, &(size_t){0});
    better = strstr(printed, " is better than the given configuration by ");
    if (better != NULL) {
        snprintf(words, sizeof words, "%.*s.", (int)strcspn(better, "\n"),
                 better);
        assert_says(page, words);
    }
    free(printed);
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers_that_change),
        cmocka_unit_test(test_the_page_of_a_search),
    };

    return cmocka_run_group_tests_name("tune_numbers", tests, set_up,
                                       digits_tear_down);
}
