/*
 * What follows a job from outside: the metrics for Prometheus.
 */
#include "cli/telemetry/metrics.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- metrics ------------------------------------------------------------- */

#define FIELDS(...)                                                            \
    (const bm_field[])                                                         \
    {                                                                          \
        __VA_ARGS__,                                                           \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }

static char *printed(const bm_metrics *m)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);

    assert_non_null(memory);
    bm_metrics_print(m, memory);
    fclose(memory);
    return text;
}

static void assert_metrics(const bm_metrics *m, const char *expected)
{
    char *text = printed(m);

    assert_string_equal(text, expected);
    free(text);
}

/* A job that resumes after block 4 of 20 and trains two blocks; values that
 * never were numbers are left out, one that stopped to be a number is NaN. */
static void test_metrics_have_the_text_format_of_prometheus(void **_)
{
    bm_metrics *m = NULL;

    (void)_;
    assert_ok(bm_metrics_open(&m, in_folder("one.prom"), "a\\b\"c\nd"));
    bm_metrics_take(m, "start",
                    FIELDS({"attempt", 3, NULL}, {"workers", 16, NULL},
                           {"blocks_per_epoch", 10, NULL}, {"epochs", 2, NULL},
                           {"blocks", 4, NULL}, {"seconds", 0.5, NULL}),
                    1787566272.125);
    bm_metrics_take(m, "block",
                    FIELDS({"epoch", 0, NULL}, {"block", 4, NULL},
                           {"blocks_per_epoch", 10, NULL}, {"loss", 1.5, NULL},
                           {"error", 0.25, NULL}, {"frames", 1e9, NULL},
                           {"exchange_s", 0.5, NULL},
                           {"sent_bytes", NAN, NULL}),
                    1787566273);
    bm_metrics_take(m, "block",
                    FIELDS({"epoch", 0, NULL}, {"block", 5, NULL},
                           {"blocks_per_epoch", 10, NULL}, {"loss", NAN, NULL},
                           {"error", 0.125, NULL}, {"frames", 1, NULL},
                           {"exchange_s", 0.25, NULL},
                           {"sent_bytes", NAN, NULL}),
                    1787566274);
    bm_metrics_take(m, "eval",
                    FIELDS({"data", 0, "dev"}, {"loss", 2, NULL},
                           {"ler", INFINITY, NULL}, {"seconds", 3, NULL}),
                    1787566275);
    bm_metrics_take(m, "warning", FIELDS({"message", 0, "loss"}), 1787566275);
    bm_metrics_take(m, "end", FIELDS({"reason", 0, "stopped"}), 1787566276);
    assert_metrics(
        m,
#define RUN "{run=\"a\\\\b\\\"c\\nd\""
        "# HELP bmuf_state 1 for the state of the run, 0 for the others.\n"
        "# TYPE bmuf_state gauge\n"
        "bmuf_state" RUN ",state=\"running\"} 0\n"
        "bmuf_state" RUN ",state=\"done\"} 0\n"
        "bmuf_state" RUN ",state=\"converged\"} 0\n"
        "bmuf_state" RUN ",state=\"stopped\"} 1\n"
        "bmuf_state" RUN ",state=\"failed\"} 0\n"
        "# HELP bmuf_workers Workers of the run.\n"
        "# TYPE bmuf_workers gauge\n"
        "bmuf_workers" RUN "} 16\n"
        "# HELP bmuf_start_timestamp_seconds When the job began to train.\n"
        "# TYPE bmuf_start_timestamp_seconds gauge\n"
        "bmuf_start_timestamp_seconds" RUN "} 1787566272.125\n"
        "# HELP bmuf_restarts_total Earlier jobs of the run.\n"
        "# TYPE bmuf_restarts_total counter\n"
        "bmuf_restarts_total" RUN "} 2\n"
        "# HELP bmuf_blocks_done Blocks done, in all jobs of the run.\n"
        "# TYPE bmuf_blocks_done gauge\n"
        "bmuf_blocks_done" RUN "} 6\n"
        "# HELP bmuf_epochs_done Epochs done, with fractions, in all jobs of "
        "the run.\n"
        "# TYPE bmuf_epochs_done gauge\n"
        "bmuf_epochs_done" RUN "} 0.6\n"
        "# HELP bmuf_epochs_wanted Epochs of the whole run.\n"
        "# TYPE bmuf_epochs_wanted gauge\n"
        "bmuf_epochs_wanted" RUN "} 2\n"
        "# HELP bmuf_progress_ratio Epochs done by epochs wanted.\n"
        "# TYPE bmuf_progress_ratio gauge\n"
        "bmuf_progress_ratio" RUN "} 0.3\n"
        "# HELP bmuf_frames_total Frames that this job trained on.\n"
        "# TYPE bmuf_frames_total counter\n"
        "bmuf_frames_total" RUN "} 1000000001\n"
        "# HELP bmuf_loss_nats Mean loss: in training of the last block, else "
        "of the last evaluation.\n"
        "# TYPE bmuf_loss_nats gauge\n"
        "bmuf_loss_nats" RUN ",data=\"train\"} NaN\n"
        "bmuf_loss_nats" RUN ",data=\"dev\"} 2\n"
        "# HELP bmuf_label_error_ratio Label errors by labels: in training of "
        "the last block, else of the last evaluation.\n"
        "# TYPE bmuf_label_error_ratio gauge\n"
        "bmuf_label_error_ratio" RUN ",data=\"train\"} 0.125\n"
        "# HELP bmuf_last_block_timestamp_seconds When a block ended last.\n"
        "# TYPE bmuf_last_block_timestamp_seconds gauge\n"
        "bmuf_last_block_timestamp_seconds" RUN "} 1787566274\n"
        "# HELP bmuf_phase_seconds_total Where the time of rank 0 went: stall "
        "is waiting for data, wait for the slowest rank.\n"
        "# TYPE bmuf_phase_seconds_total counter\n"
        "bmuf_phase_seconds_total" RUN ",phase=\"start\"} 0.5\n"
        "bmuf_phase_seconds_total" RUN ",phase=\"exchange\"} 0.75\n"
        "bmuf_phase_seconds_total" RUN ",phase=\"evaluation\"} 3\n");
#undef RUN
    bm_metrics_free(m);
}

/* Epochs of 8 and 2 blocks: a job that resumes after nine has done 1.5 of them. */
static void test_epochs_may_have_other_numbers_of_blocks(void **_)
{
    bm_metrics *m = NULL;
    char *text = NULL;

    (void)_;
    assert_ok(bm_metrics_open(&m, in_folder("epochs.prom"), "r"));
    bm_metrics_take(m, "start",
                    FIELDS({"blocks_per_epoch", 8, NULL}, {"epochs", 3, NULL},
                           {"blocks", 9, NULL}, {"epochs_done", 1.5, NULL}),
                    100);
    text = printed(m);
    assert_says(text, "bmuf_blocks_done{run=\"r\"} 9\n");
    assert_says(text, "bmuf_epochs_done{run=\"r\"} 1.5\n");
    assert_says(text, "bmuf_progress_ratio{run=\"r\"} 0.5\n");
    free(text);
    bm_metrics_take(m, "block",
                    FIELDS({"epoch", 1, NULL}, {"block", 1, NULL},
                           {"blocks_per_epoch", 2, NULL}),
                    101);
    text = printed(m);
    assert_says(text, "bmuf_blocks_done{run=\"r\"} 10\n");
    assert_says(text, "bmuf_epochs_done{run=\"r\"} 2\n");
    free(text);
    bm_metrics_free(m);
}

/* The number of blocks that the file tells. */
static double blocks_told(const char *name)
{
    char *text = slurp(in_folder(name), &(size_t){0});
    double n = number_after(text, "bmuf_blocks_done{run=\"r\"}");

    free(text);
    return n;
}

static void take_block(bm_metrics *m, double now)
{
    bm_metrics_take(m, "block", FIELDS({"loss", 1, NULL}), now);
}

static void test_metrics_are_written_once_a_second(void **_)
{
    bm_metrics *m = NULL;

    (void)_;
    assert_ok(bm_metrics_open(&m, in_folder("rate.prom"), "r"));
    bm_metrics_take(m, "start", FIELDS({"blocks", 0, NULL}), 100);
    take_block(m, 100.5); /* another kind of event than start */
    assert_true(blocks_told("rate.prom") == 1);
    take_block(m, 100.75);
    take_block(m, 101.25);
    assert_true(blocks_told("rate.prom") == 1);
    take_block(m, 101.5);
    assert_true(blocks_told("rate.prom") == 4);
    take_block(m, 60); /* someone set the clock */
    assert_true(blocks_told("rate.prom") == 5);
    take_block(m, 60.5);
    bm_metrics_take(m, "end", FIELDS({"blocks", 6, NULL}), 60.5);
    assert_true(blocks_told("rate.prom") == 6);
    bm_metrics_free(m);
}

/* Fails unless the file has the line, and no line is twice. */
static void assert_line(const char *name, const char *line)
{
    char *text = slurp(in_folder(name), &(size_t){0});

    assert_says(text, line);
    assert_int_equal(count_of(text, line), 1);
    assert_true(text[strlen(text) - 1] == '\n');
    free(text);
}

/* Blocks become smaller in the last epoch, which so has more of them. */
static void test_a_run_leaves_its_last_metrics(void **_)
{
    json_t *last = NULL;
    char line[100];
    outcome o;

    (void)_;
    o = BMUF("train", "tiny.ini", "--out", "told/", "--set",
             "job.metrics=told.prom", "--set",
             "block.frames_total=500@0 250@2");
    assert_code(o, 0);
    last = last_event("told", "end");
    assert_line("told.prom", "bmuf_state{run=\"told\",state=\"done\"} 1\n");
    assert_line("told.prom", "bmuf_state{run=\"told\",state=\"running\"} 0\n");
    assert_line("told.prom", "bmuf_progress_ratio{run=\"told\"} 1\n");
    assert_line("told.prom", "bmuf_epochs_done{run=\"told\"} 3\n");
    assert_line("told.prom", "bmuf_restarts_total{run=\"told\"} 0\n");
    snprintf(line, sizeof line, "bmuf_frames_total{run=\"told\"} %.0f\n",
             number(last, "frames"));
    assert_line("told.prom", line);
    snprintf(line, sizeof line, "bmuf_blocks_done{run=\"told\"} %.0f\n",
             number(last, "blocks"));
    assert_line("told.prom", line);
    json_decref(last);

    /* Again: all epochs are done. */
    o = BMUF("train", "tiny.ini", "--out", "told/", "--set",
             "job.metrics=told.prom", "--set",
             "block.frames_total=500@0 250@2");
    assert_code(o, 0);
    assert_line("told.prom", "bmuf_epochs_done{run=\"told\"} 3\n");
    assert_line("told.prom", "bmuf_restarts_total{run=\"told\"} 1\n");

    /* A label is UTF-8: a byte that is not is written out, \\ is escaped. */
    o = BMUF("train", "tiny.ini", "--out", "t\xe9", "--set",
             "job.metrics=told.prom", "--set", "train.epochs=1");
    assert_code(o, 0);
    assert_line("told.prom", "bmuf_workers{run=\"t\\\\xe9\"} 2\n");
}

static void test_metrics_that_cannot_be_written_are_a_warning(void **_)
{
    outcome o;

    (void)_;
    o = BMUF("train", "tiny.ini", "--out", "untold", "--set",
             "job.metrics=none/told.prom");
    assert_code(o, 0);
    assert_int_equal(count_of(o.err, "job.metrics: none/told.prom cannot be "
                                     "created: there is no directory none/"),
                     1);
}

/* Of any other file they would be the last. */
static void test_metrics_replace_nothing_else(void **_)
{
    (void)_;
    write_text("list.txt", "a list\n");
    assert_fails(BMUF("train", "tiny.ini", "--out", "new", "--set",
                      "job.metrics=tiny.ini"),
                 73,
                 "job.metrics tiny.ini would replace what this command reads");
    assert_fails(
        BMUF("train", "tiny.ini", "--out", "new", "--set",
             "job.metrics=list.txt"),
        73,
        "job.metrics = list.txt would replace a file that is not of metrics");
    assert_int_equal(access(in_folder("new"), F_OK), -1);
    assert_fails(BMUF("train", "tiny.ini", "--out", "new", "--set",
                      "job.metrics=new/model.safetensors"),
                 73, "new/model.safetensors would replace a file of a run");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metrics_have_the_text_format_of_prometheus),
        cmocka_unit_test(test_epochs_may_have_other_numbers_of_blocks),
        cmocka_unit_test(test_metrics_are_written_once_a_second),
        cmocka_unit_test(test_a_run_leaves_its_last_metrics),
        cmocka_unit_test(test_metrics_that_cannot_be_written_are_a_warning),
        cmocka_unit_test(test_metrics_replace_nothing_else),
    };

    return cmocka_run_group_tests(tests, make_corpus, folder_remove);
}
