/*
 * Searches of bmuf tune that go on: the same trials however many run at a time, and
 * after they were stopped or killed; with larger budgets; after faults of the machine;
 * and what a folder of a search refuses.
 */
#include "cli/tune/tuning.h"
#include "core/file/file_lock.h"
#include "tests/cli/tune/searched.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/program.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The rows of trials.tsv without the seconds, in the order of the alphabet. */
static char *rows_of(const char *directory)
{
    char *text = read_whole(directory, "trials.tsv"), *rest = NULL, *rows[200];
    size_t n = 0, used = 0, room = strlen(text) + 1;
    char *out = calloc(1, room);

    assert_non_null(out);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *field = line;

        assert_true(n < 200);
        rows[n++] = line;
        for (int k = 0; k < 8; k++)
            field = strchr(field, '\t') + 1;
        memmove(field, strchr(field, '\t'), strlen(strchr(field, '\t')) + 1);
    }
    qsort(rows, n, sizeof *rows, by_text);
    for (size_t i = 0; i < n; i++)
        used += (size_t)snprintf(out + used, room - used, "%s\n", rows[i]);
    free(text);
    return out;
}

static void assert_same_search(const char *a, const char *b)
{
    char *rows[] = {rows_of(a), rows_of(b)};
    char *best[] = {read_whole(a, "best.ini"), read_whole(b, "best.ini")};

    assert_string_equal(rows[0], rows[1]);
    assert_string_equal(best[0], best[1]);
    for (int k = 0; k < 2; k++) {
        free(rows[k]);
        free(best[k]);
    }
}

/* Those of a smaller budget had other finalists, too. */
static void assert_has_rows_of(const char *larger, const char *smaller)
{
    char *rows = rows_of(larger), *part = rows_of(smaller), *rest = NULL;

    for (char *line = strtok_r(part, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        assert_says(rows, line);
    free(rows);
    free(part);
}

static void test_trials_do_not_depend_on_how_many_run(void **_)
{
    program p;
    outcome o, given;
    char *page = NULL;

    (void)_;
    TUNE(&p, "one", "--jobs", "1");
    assert_ended(&p, 0);
    assert_printed(&p, "The best settings, in one/best.ini");
    assert_printed(&p, "the configuration as it was given");
    TUNE(&p, "three", "--jobs", "3");
    assert_ended(&p, 0);
    assert_same_search("one", "three");

    /* Once more: nothing is left to train. */
    TUNE(&p, "three", "--jobs", "3");
    assert_ended(&p, 0);
    assert_not_said(&p, "label errors on dev");
    assert_same_search("one", "three");

    page = read_whole("one", "report.html");
    assert_says(page, "best error on dev");
    assert_says(page, "all trials");
    assert_says(page, "t000: as it was given");
    free(page);

    /* What it leaves can be used. */
    given = BMUF("explain", "tune.ini");
    o = BMUF("explain", "one/best.ini");
    assert_code(o, 0);
    assert_true(count_of(o.out, "warning") <= count_of(given.out, "warning"));
    assert_true(count_of(given.out, "warning") > 0);
    for (int i = 1; i <= 4; i++) {
        char path[64];

        snprintf(path, sizeof path, "one/trials/t%03d.ini", i);
        o = BMUF("explain", path);
        assert_int_equal(count_of(o.out, "warning"), 0);
    }
    o = BMUF("info", "one/trials");
    assert_code(o, 0);
    assert_says(o.out, "t000-2");
    assert_says(o.out, "-3"); /* of the finalist, the second of two seeds */
    assert_says(o.out, "t004");
}

/* Its config.ini and its record are not those of a run. */
static void test_a_search_is_not_taken_for_a_run(void **_)
{
    static const char lists[] = "bmuf info one/trials",
                      trains[] = "bmuf train one/best.ini --out RUN";

    (void)_;
    assert_fails(BMUF("train", "one"), 64, lists, trains);
    assert_int_not_equal(access(in_folder("run"), F_OK), 0);
    assert_fails(BMUF("info", "one"), 64, lists, trains);
    assert_fails(BMUF("eval", "one", "dev"), 64, lists, trains);
    assert_fails(BMUF("report", "one"), 64, lists, trains);
    assert_fails(BMUF("scale", "one"), 64, lists, trains);
    assert_fails(BMUF("trace", "one"), 64, lists, trains);
}

/* As a run of its own it could not be resumed as a search. */
static void test_nothing_is_trained_or_packed_into_a_search(void **_)
{
    char *before = read_whole("one", "config.ini"), *after = NULL;
    outcome o;

    (void)_;
    assert_fails(BMUF("train", "tune.ini", "--out", "one"), 64,
                 "one is a search of bmuf tune");
    o = BMUF("train", "tune.ini", "--out", "one", "--dry-run");
    assert_code(o, 64);
    assert_says(o.err, "one is a search of bmuf tune");
    assert_fails(BMUF("pack", "--audio", "dev.jsonl", "--out", "one"), 73,
                 "one is a search of bmuf tune", "another folder");
    after = read_whole("one", "config.ini");
    assert_string_equal(after, before);
    assert_int_not_equal(access(in_folder("one/checkpoints"), F_OK), 0);
    free(before);
    free(after);
}

static void test_a_killed_search_goes_on(void **_)
{
    static const char *const words[] = {"tune",   "tune.ini", "--out",
                                        "killed", "--trials", "5",
                                        "--jobs", "2",        NULL};
    program p;
    pid_t members[FAMILY];

    (void)_;
    for (int k = 0; k < 4; k++) {
        size_t n = 0;

        program_start(&p, words);
        pause_for(0.3 + 0.4 * k);
        if (!program_runs(&p))
            break;
        n = family(&p, members);
        kill(p.pid, SIGKILL);
        program_wait(&p);
        assert_gone(members, n); /* trials stop with it */
    }
    program_start(&p, words);
    program_wait(&p);
    assert_ended(&p, 0);
    assert_same_search("one", "killed");
}

static void test_a_stopped_search_goes_on(void **_)
{
    static const char *const words[] = {"tune",    "tune.ini", "--out",
                                        "stopped", "--trials", "5",
                                        "--jobs",  "2",        NULL};
    program p;

    (void)_;
    program_start(&p, words);
    assert_true(event_comes(&p, "stopped/record", "result", 1));
    kill(p.pid, SIGTERM);
    program_wait(&p);
    assert_ended(&p, 75);
    assert_said(&p, "the same command goes on");
    program_start(&p, words);
    program_wait(&p);
    assert_ended(&p, 0);
    assert_same_search("one", "stopped");
}

/* Results of trials that had other settings are not taken for those of these. */
static void test_trials_of_another_version_are_refused(void **_)
{
    program p;

    (void)_;
    run_tool((char *[]){"cp", "-R", (char *)in_folder("one"),
                        (char *)in_folder("other"), NULL});
    run_tool((char *[]){"sed", "-i", "s/^rate = .*/rate = 0.9/",
                        (char *)in_folder("other/trials/t001.ini"), NULL});
    TUNE(&p, "other", "--jobs", "2");
    assert_ended(&p, 78);
    assert_said(&p, "other/trials/t001.ini: this version of bmuf chooses other "
                    "settings");
    assert_said(&p, "train.rate: was 0.9, now");
}

static void copy(const char *from, const char *to)
{
    char source[PATH_MAX];

    snprintf(source, sizeof source, "%s", in_folder(from));
    run_tool((char *[]){"rm", "-rf", (char *)in_folder(to), NULL});
    run_tool((char *[]){"cp", "-R", source, (char *)in_folder(to), NULL});
}

/* Errors on other data say nothing about the trials before. */
static void test_a_search_does_not_go_on_with_other_data(void **_)
{
    static const char *const keys[] = {"train", "dev"};
    program p;

    (void)_;
    for (int k = 0; k < 2; k++) {
        char set[64], first[64], out[64];

        snprintf(out, sizeof out, "other_%s", keys[k]);
        snprintf(set, sizeof set, "data.%s=%s2", keys[k], keys[k]);
        snprintf(first, sizeof first, "data.%s: ", keys[k]);
        copy("train", "train2");
        copy("dev", "dev2");
        TUNE(&p, out, "--set", set, "--set", "tune.seeds=1", "--set",
             "train.epochs=1");
        assert_ended(&p, 0);
        copy(keys[1 - k], k == 0 ? "train2" : "dev2");
        TUNE(&p, out, "--set", set, "--set", "tune.seeds=1", "--set",
             "train.epochs=1");
        assert_ended(&p, 78);
        assert_said(&p, first);
        assert_said(&p, "put that set back, or give another --out");
    }
}

/* As a disk does that is mounted again soon. */
static void test_data_that_are_away_do_not_fail_trials(void **_)
{
    static const char *const words[] = {
        "tune",  "tune.ini",     "--out", "away",  "--trials",
        "5",     "--jobs",       "1",     "--set", "data.dev=gone",
        "--set", "tune.seeds=1", NULL};
    char from[PATH_MAX], *journal = NULL;
    program p;

    (void)_;
    copy("dev", "gone");
    snprintf(from, sizeof from, "%s", in_folder("gone"));
    program_start(&p, words);
    assert_true(event_comes(&p, "away/record", "result", 3));
    assert_int_equal(rename(from, in_folder("elsewhere")), 0);
    program_wait(&p);
    assert_ended(&p, 66);
    assert_said(&p, "once that is fixed, the same command goes on");
    assert_int_equal(rename(in_folder("elsewhere"), from), 0);
    program_start(&p, words);
    program_wait(&p);
    assert_ended(&p, 0);
    journal = read_whole("away/record", "journal.jsonl");
    assert_int_equal(count_of(journal, "\"failed\""), 0);
    free(journal);
}

/* As a trial does that outlives a killed search until its block ends. */
static void test_a_run_in_use_is_waited_for(void **_)
{
    static const char *const words[] = {
        "tune",           "tune.ini", "--out", "held",  "--trials",     "2",
        "--jobs",         "1",        "-v",    "--set", "tune.seeds=1", "--set",
        "train.epochs=1", NULL};
    char *journal = NULL;
    int lock = -1;
    program p;

    (void)_;
    run_tool(
        (char *[]){"mkdir", "-p", (char *)in_folder("held/trials/t000"), NULL});
    run_tool((char *[]){"mkdir", (char *)in_folder("held/record"), NULL});
    assert_ok(bm_file_lock(&lock, in_folder("held/trials/t000"), "run.lock"));
    program_start(&p, words);
    pause_for(3);
    assert_true(program_runs(&p));
    bm_file_unlock(lock, in_folder("held/trials/t000"), "run.lock");
    program_wait(&p);
    assert_ended(&p, 0);
    assert_said(&p, "t000 waits: ");
    journal = read_whole("held/record", "journal.jsonl");
    assert_int_equal(count_of(journal, "\"failed\""), 0);
    free(journal);
}

/* The system kills what takes too much memory. */
static void test_a_trial_that_was_killed_has_failed(void **_)
{
    bm_tuning t = {.directory = in_folder("one"), .set = {.rungs = 2}};
    bm_tune_result r;

    (void)_;
    assert_ok(
        bm_trial_result(&t, (bm_tune_job){.trial = 7}, 128 + SIGKILL, &r));
    assert_int_equal(r.trained, 0); /* it has no run */
    assert_ok(
        bm_trial_result(&t, (bm_tune_job){.trial = 1}, 128 + SIGKILL, &r));
    assert_in_range(r.trained, 1, 4);
    assert_string_equal(r.state, "failed");
    assert_says(r.reason, "killed by signal 9");
    assert_int_equal(
        bm_trial_result(&t, (bm_tune_job){.trial = 1}, 128 + SIGTERM, &r),
        BM_STOPPED);
}

/* The given configuration is trained first; that it fails ends the search. */
static void test_a_configuration_that_fails_ends_the_search(void **_)
{
    program p;

    (void)_;
    TUNE(&p, "broken", "--set", "model.net=stack:900 linear");
    assert_ended(&p, 78);
    assert_said(&p, "the configuration as it was given cannot be trained");
}

/* A limit on the size of files takes the place of a full disk: the journals are
 * smaller, the first checkpoint is larger. */
static void test_a_full_disk_does_not_blame_the_configuration(void **_)
{
    static const char *const words[] = {"tune",     "tune.ini", "--out",
                                        "full",     "--jobs",   "1",
                                        "--trials", "5",        NULL};
    program p;
    outcome o = command_run(&(command){.words = words, .file_bytes = 8000});

    (void)_;
    assert_code(o, 74);
    assert_says(o.err, "the configuration as it was given failed: ");
    assert_says(o.err, "the same command goes on");
    assert_null(strstr(o.err, "new --out"));
    program_start(&p, words);
    program_wait(&p);
    assert_ended(&p, 0);
    assert_same_search("one", "full");
}

static void test_a_killed_first_trial_is_tried_again(void **_)
{
    static const char *const words[] = {"tune",     "tune.ini",
                                        "--out",    "shot",
                                        "--trials", "2",
                                        "--jobs",   "1",
                                        "--set",    "train.epochs=30",
                                        "--set",    "tune.seeds=1",
                                        "--over",   "train.rate=0.005..0.02",
                                        NULL};
    char *journal = NULL;
    pid_t members[FAMILY];
    program p;

    (void)_;
    program_start(&p, words);
    assert_true(event_comes(&p, "shot/trials/t000", "start", 1));
    for (size_t n = family(&p, members); n > 0; n--)
        kill(members[n - 1], SIGKILL);
    program_wait(&p);
    assert_ended(&p, 69);
    assert_said(&p,
                "the configuration as it was given failed: killed by signal "
                "9");
    assert_not_said(&p, "new --out");
    program_start(&p, words);
    program_wait(&p);
    assert_ended(&p, 0);
    journal = read_whole("shot/record", "journal.jsonl");
    assert_int_equal(count_of(journal, "\"failed\""), 0);
    free(journal);
}

/* Epochs of all runs of a search, each with an evaluation. */
static int trained(const char *directory)
{
    char run[64], path[80];
    int epochs = 0;

    for (int i = 0;; i++) {
        snprintf(run, sizeof run, "%s/trials/t%03d", directory, i);
        snprintf(path, sizeof path, "%s/journal.jsonl", run);
        if (access(in_folder(path), F_OK) != 0)
            return epochs;
        epochs += events(run, "eval");
    }
}

static void assert_same_file(const char *a, const char *b, const char *name)
{
    char *texts[] = {read_whole(a, name), read_whole(b, name)};

    assert_string_equal(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
}

/* Settings after these count. */
#define SPEND(p, out, ...)                                                     \
    RUN_PROGRAM(p, "tune", "tune.ini", "--set", "train.epochs=27", "--set",    \
                "train.rate=0.1", "--set", "tune.rungs=3", "--set",            \
                "tune.ahead=2", "--set", "tune.seeds=1", "--out", out,         \
                "--epochs", __VA_ARGS__)

/* The trials of a search that had the larger budget from the start. */
static void test_a_larger_budget_continues_a_finished_search(void **_)
{
    char *rows[2];
    program p;

    (void)_;
    SPEND(&p, "spent", "69");
    assert_ended(&p, 0);
    assert_in_range(trained("spent"), 27 + 1, 69);
    SPEND(&p, "spent", "120");
    assert_ended(&p, 0);
    SPEND(&p, "anew", "120");
    assert_ended(&p, 0);
    assert_in_range(trained("anew"), 69 + 1, 120);
    for (int i = 0;; i++) {
        char name[32], path[64];

        snprintf(name, sizeof name, "trials/t%03d.ini", i);
        snprintf(path, sizeof path, "anew/%s", name);
        if (access(in_folder(path), F_OK) != 0)
            break;
        assert_same_file("spent", "anew", name);
    }
    assert_same_file("spent", "anew", "best.ini");
    assert_has_rows_of("spent", "anew");

    /* And a smaller one takes nothing away. */
    rows[0] = rows_of("spent");
    SPEND(&p, "spent", "69");
    assert_ended(&p, 0);
    assert_not_said(&p, "label errors on dev");
    assert_said(&p, "its trials stay, and it has no new ones; for more give "
                    "--epochs above ");
    rows[1] = rows_of("spent");
    assert_string_equal(rows[0], rows[1]);
    assert_same_file("spent", "anew", "best.ini");
    free(rows[0]);
    free(rows[1]);
}

static int lines_of(const char *directory, const char *file)
{
    char *text = read_whole(directory, file);
    int n = count_of(text, "\n");

    free(text);
    return n;
}

/* What a line of the outcome asks for, "a larger tune.seeds". */
static void test_more_seeds_add_to_a_finished_search(void **_)
{
    int before = 0;
    program p;

    (void)_;
    SPEND(&p, "seeded", "69");
    assert_ended(&p, 0);
    before = lines_of("seeded", "trials.tsv");
    SPEND(&p, "seeded", "69", "--set", "tune.seeds=2");
    assert_ended(&p, 0);
    assert_said(&p, "its trials stay");
    /* a second run of t000 and of each finalist, of which all have one */
    assert_int_equal(lines_of("seeded", "trials.tsv"), before + 2);
    SPEND(&p, "seeded", "69", "--set", "tune.seeds=2", "--trials", "1");
    assert_ended(&p, 0);
    assert_said(&p, "trials: they stay, also with --trials 1");
    assert_int_equal(lines_of("seeded", "trials.tsv"), before + 2);
}

/* The given configuration learns nothing, so that the first rung is as long as
 * training. That is kept when its run is deleted. */
static void test_a_search_goes_on_without_the_run_of_its_first_trial(void **_)
{
    static const char *const budgets[][2] = {
        {"bare", "20"}, {"bare", "32"}, {"whole_search", "32"}};
    char row[FIELDS][64];
    program p;

    (void)_;
    FOR_EACH (i, budgets) {
        RUN_PROGRAM(&p, "tune", "tune.ini", "--out", budgets[i][0], "--epochs",
                    budgets[i][1], "--set", "tune.seeds=1", "--set",
                    "train.rate=1e-9", "--over", "train.rate=0.01..0.02");
        assert_ended(&p, 0);
        if (i == 0)
            run_tool((char *[]){"rm", "-r",
                                (char *)in_folder("bare/trials/t000"), NULL});
    }
    assert_has_rows_of("bare", "whole_search");
    row_of("bare", "t001", row);
    assert_string_equal(row[3], "4"); /* epochs */
}

/* A rung is bmuf train --until. [tune] does not belong to a run. */
static void test_a_run_that_stopped_after_an_epoch_goes_on(void **_)
{
    outcome o;

    (void)_;
    assert_code(BMUF("train", "tune.ini", "--out", "whole"), 0);
    o = BMUF("train", "tune.ini", "--out", "parts", "--until", "2");
    assert_code(o, 0);
    assert_says(o.err, "stopped after epoch 2 (--until 2)");
    assert_code(BMUF("info", "parts/model.safetensors"), 66);
    o = BMUF("train", "tune.ini", "--out", "parts", "--set", "tune.rungs=4");
    assert_code(o, 0);
    assert_same_model("whole", "parts");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_that_stopped_after_an_epoch_goes_on),
        cmocka_unit_test(test_trials_do_not_depend_on_how_many_run),
        cmocka_unit_test(test_a_search_is_not_taken_for_a_run),
        cmocka_unit_test(test_nothing_is_trained_or_packed_into_a_search),
        cmocka_unit_test(test_a_killed_search_goes_on),
        cmocka_unit_test(test_a_stopped_search_goes_on),
        cmocka_unit_test(test_trials_of_another_version_are_refused),
        cmocka_unit_test(test_a_search_does_not_go_on_with_other_data),
        cmocka_unit_test(test_data_that_are_away_do_not_fail_trials),
        cmocka_unit_test(test_a_larger_budget_continues_a_finished_search),
        cmocka_unit_test(test_more_seeds_add_to_a_finished_search),
        cmocka_unit_test(
            test_a_search_goes_on_without_the_run_of_its_first_trial),
        cmocka_unit_test(test_a_run_in_use_is_waited_for),
        cmocka_unit_test(test_a_trial_that_was_killed_has_failed),
        cmocka_unit_test(test_a_configuration_that_fails_ends_the_search),
        cmocka_unit_test(test_a_full_disk_does_not_blame_the_configuration),
        cmocka_unit_test(test_a_killed_first_trial_is_tried_again),
    };

    return cmocka_run_group_tests_name("tune_resume", tests, search_set_up,
                                       digits_tear_down);
}
