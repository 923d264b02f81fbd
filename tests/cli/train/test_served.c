/*
 * Whole runs with a parameter server: the same model on any number of ranks and
 * across a stop, server events of the journal, and runs in real time.
 */
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const ways[] = {
    "train.strategy=asgd; asgd.scaling=inverse; sgd.momentum=0.5",
    "train.strategy=softsync; softsync.n=2; sgd.momentum=0.5",
    "train.strategy=easgd; clock.times=1 1 1 5; clock.spread=0.2; train.ema=.5",
};

static void run(const char *name, int ranks, const char *settings)
{
    program p;

    remove_run(name);
    train(&p, name, ranks, settings);
    assert_ended(&p, 0);
}

/* Settings of easgd, the last to run. */
static void assert_same_average(const char *run, const char *other)
{
    const char *const runs[] = {run, other};
    char *raw[2];
    size_t size[2];

    FOR_EACH (i, runs) {
        char name[64];

        snprintf(name, sizeof name, "%s/model-ema.safetensors", runs[i]);
        raw[i] = slurp(in_folder(name), &size[i]);
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(raw[0], raw[1], size[0]);
    free(raw[0]);
    free(raw[1]);
}

/* A run on two ranks, and one that stops after an epoch on three ranks and
 * resumes on one. */
static void test_ranks_and_stops_change_no_bits(void **state)
{
    (void)state;
    FOR_EACH (k, ways) {
        char settings[200];
        program p;

        snprintf(settings, sizeof settings,
                 "%s; train.epochs=2; schedule.kind=constant", ways[k]);
        run("whole", 2, settings);
        snprintf(settings, sizeof settings,
                 "%s; train.epochs=1; schedule.kind=constant", ways[k]);
        run("halves", 3, settings);
        snprintf(settings, sizeof settings,
                 "%s; train.epochs=2; schedule.kind=constant", ways[k]);
        train(&p, "halves", 1, settings);
        assert_ended(&p, 0);
        assert_said(&p, "resuming from");
        assert_same_model("whole", "halves");
    }
    assert_same_average("whole", "halves");
}

/* The sum of the counts in "0:1 3:12", and the sum of staleness * count. */
static void add_counts(const char *counts, double *n, double *sum)
{
    *n = *sum = 0;
    while (*counts != '\0') {
        char *end = NULL;
        double tau = strtod(counts, &end), of = 0;

        assert_int_equal(*end, ':');
        of = strtod(end + 1, &end);
        *n += of;
        *sum += tau * of;
        counts = end + strspn(end, " ");
    }
}

/* One push and one fetch per mini-batch, all of them counted. */
static void assert_server_event(const json_t *block, const json_t *server,
                                double weights)
{
    double pushes = number(server, "pushes"), n = 0, sum = 0;

    assert_true(number(server, "block") == number(block, "block"));
    assert_true(pushes == number(block, "batches"));
    assert_true(number(server, "updates") == pushes);
    assert_true(number(server, "pushed_bytes") == 4 * weights * pushes);
    assert_true(number(server, "pulled_bytes") == 4 * weights * pushes);
    add_counts(text(server, "staleness_counts"), &n, &sum);
    assert_true(n == pushes);
    assert_true(near(number(server, "staleness"), sum / n, 1e-8));
    assert_true(number(server, "staleness_most") >= sum / n);
    assert_true(number(server, "virtual_s") > 0);
}

static void test_the_journal_has_server_events(void **state)
{
    json_t *all = NULL, *row = NULL, *block = NULL, *start = NULL;
    char times[80], settings[300];
    int rows = 0;
    size_t i = 0;

    (void)state;
    run("rows", 2, ways[0]);
    all = journal("rows");
    start = last_event("rows", "start");
    json_array_foreach(all, i, row)
    {
        if (strcmp(text(row, "event"), "block") == 0)
            block = row;
        if (strcmp(text(row, "event"), "server") != 0)
            continue;
        assert_server_event(block, row, number(start, "weights"));
        snprintf(times, sizeof times, "%s", text(row, "step_s"));
        rows++;
    }
    assert_int_equal(rows, events("rows", "block"));
    json_decref(start);
    json_decref(all);
    /* With measured times as a setting, runs are reproducible. */
    snprintf(settings, sizeof settings, "%s; clock.times=%s", ways[0], times);
    run("first", 1, settings);
    run("other", 2, settings);
    assert_same_model("first", "other");
}

/* With all workers in one group it equals synchronous SGD up to rounding; and
 * no worker waits without limit. */
static void test_real_time_training_converges(void **state)
{
    json_t *real = NULL, *ssgd = NULL, *server = NULL;
    double mean[2] = {-1, -1};

    (void)state;
    run("real", 2,
        "train.strategy=softsync; clock.kind=real; job.workers=2; "
        "train.epochs=3");
    run("ssgd", 2, "train.strategy=ssgd; job.workers=2; train.epochs=3");
    real = last_event("real", "eval");
    ssgd = last_event("ssgd", "eval");
    assert_true(near(number(real, "loss"), number(ssgd, "loss"), 0.01));
    json_decref(real);
    json_decref(ssgd);
    run("real", 2, "train.strategy=easgd; clock.kind=real; job.workers=2");
    server = last_event("real", "server");
    assert_true(number(server, "shards") == 2);
    assert_int_equal(sscanf(text(server, "staleness_of_shards"), "%lf %lf",
                            &mean[0], &mean[1]),
                     2);
    assert_true(
        near(number(server, "staleness"), (mean[0] + mean[1]) / 2, 1e-3));
    json_decref(server);
}

/* One worker is served in the only order there is: by a run that stops and
 * resumes, too, and with an update that needs to know of matrices. */
static void test_one_worker_in_real_time_has_the_bits_of_the_clock(void **state)
{
#define ALONE                                                                  \
    "train.strategy=asgd; job.workers=1; schedule.kind=constant; "             \
    "sgd.update=muon; sgd.clip=0.1; "
    program p;

    (void)state;
    run("whole", 1, ALONE "train.epochs=2");
    run("halves", 1, ALONE "clock.kind=real; train.epochs=1");
    train(&p, "halves", 1, ALONE "clock.kind=real; train.epochs=2");
    assert_ended(&p, 0);
    assert_said(&p, "resuming from");
    assert_same_model("whole", "halves");
}

/* In the middle of a block, whose other ranks wait for its server. */
static void test_a_lost_rank_ends_a_run_in_real_time(void **state)
{
    pid_t all[FAMILY];
    double since = 0;
    size_t n = 0;
    program p;

    (void)state;
    remove_run("lost");
    train_start(&p, "lost", 3,
                "--max-restarts 0; train.strategy=asgd; asgd.scaling=inverse; "
                "clock.kind=real; job.workers=3; train.epochs=1000; "
                "schedule.kind=constant; train.checkpoint_every=0");
    event_comes(&p, "lost", "block", 3);
    n = family(&p, all);
    for (size_t i = 0; i < n; i++)
        if (rank_of(all[i]) == 1)
            kill(all[i], SIGKILL);
    since = now();
    program_wait(&p);
    assert_gone(all, n);
    assert_true(now() - since < 10);
    assert_int_equal(p.code, 128 + SIGKILL);
    assert_said(&p, "rank 1 on ");
    assert_said(&p, "was killed by signal 9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_and_stops_change_no_bits),
        cmocka_unit_test(test_the_journal_has_server_events),
        cmocka_unit_test(test_real_time_training_converges),
        cmocka_unit_test(
            test_one_worker_in_real_time_has_the_bits_of_the_clock),
        cmocka_unit_test(test_a_lost_rank_ends_a_run_in_real_time),
    };

    return cmocka_run_group_tests_name("served", tests, digits_set_up,
                                       digits_tear_down);
}
