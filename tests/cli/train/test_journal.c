/*
 * The journal of whole runs: it is complete, and its numbers are consistent.
 */
#include "tests/support/command.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <string.h>

static void assert_numbers(const json_t *event, const char *const *keys)
{
    for (; *keys != NULL; keys++)
        number(event, *keys);
}

/* The times of a block add up to its seconds. */
static void assert_times(const json_t *block)
{
    double seconds = number(block, "seconds");
    double sum = number(block, "compute_s") + number(block, "wait_s") +
                 number(block, "exchange_s") + number(block, "stall_s");

    if (fabs(sum - seconds) > 0.05 * seconds + 0.02)
        fail_msg("the phases add up to %g s of the block's %g s", sum, seconds);
    assert_true(number(block, "compute_s") >= 0);
    assert_true(number(block, "stall_s") >= 0);
    assert_true(number(block, "forward_s") + number(block, "loss_s") +
                    number(block, "backward_s") + number(block, "update_s") <=
                number(block, "compute_s") + 1e-6);
}

/* The times of all events add up to the job's total, as bmuf info prints. */
static void assert_phases(const char *run, json_t *all)
{
    static const char *const parts[] = {
        "start",    "stall", "forward",  "loss", "backward",   "update",
        "learning", "wait",  "exchange", "eval", "checkpoint", "model"};
    outcome o = BMUF("info", run, "--json");
    json_t *info = parse_json(o.out), *row = NULL;
    json_t *phases = json_object_get(info, "phases");
    double events_s = 0, sum = 0, total = 0;
    size_t i = 0;

    json_array_foreach(all, i, row)
    {
        const char *kind = text(row, "event");

        if (strcmp(kind, "end") == 0) {
            events_s += number(row, "model_s");
            total += number(row, "total_s");
        } else if (strcmp(kind, "warning") != 0) {
            events_s += number(row, "seconds");
        }
    }
    FOR_EACH (k, parts)
        sum += number(phases, parts[k]);
    /* a rank may lose a time slice between two spans */
    assert_true(fabs(sum - events_s) <= 0.02 * events_s + 0.02);
    assert_true(near(sum + number(phases, "other"), total, 1e-6));
    assert_true(near(number(phases, "total"), total, 1e-6));
    assert_true(number(phases, "other") >= 0);
    assert_true(number(phases, "other") < 0.05 * total);
    json_decref(info);
}

static void assert_block(const json_t *block)
{
    assert_numbers(
        block, (const char *const[]){
                   "epoch",        "block",       "loss",       "error",
                   "rate",         "frames",      "seconds",    "frames_per_s",
                   "padding",      "compute_s",   "forward_s",  "loss_s",
                   "backward_s",   "update_s",    "wait_s",     "exchange_s",
                   "stall_s",      "g_norm",      "delta_norm", "cos_g_delta",
                   "worker_norm",  "cos_workers", "skipped",    "sent_bytes",
                   "shared_bytes", NULL});
    assert_true(number(block, "loss") > 0);
    assert_true(fabs(number(block, "cos_g_delta")) <= 1 + 1e-6);
    assert_true(number(block, "padding") >= 0); /* of one of two at most */
    assert_true(number(block, "padding") < 0.5);
    assert_times(block);
}

static void assert_eval(const json_t *eval)
{
    assert_numbers(eval, (const char *const[]){"epoch", "block", "loss", "ler",
                                               "sequences", "frames", "seconds",
                                               NULL});
    assert_string_equal(text(eval, "data"), "dev");
    assert_int_equal(number(eval, "sequences"), 20);
}

static void assert_journal(const char *run, int epochs)
{
    json_t *all = journal(run), *row = NULL;
    double frames = number(json_array_get(all, 0), "frames");
    double blocks = number(json_array_get(all, 0), "blocks_per_epoch");
    double seen = 0, next = 0, evals = 0;
    size_t i = 0;

    json_array_foreach(all, i, row)
    {
        const char *kind = text(row, "event");

        assert_non_null(strchr(text(row, "time"), 'Z'));
        if (strcmp(kind, "block") == 0) {
            assert_block(row);
            assert_true(number(row, "epoch") == floor(next / blocks));
            assert_true(number(row, "block") == fmod(next, blocks));
            seen += number(row, "frames");
            next++;
        }
        if (strcmp(kind, "eval") == 0) {
            assert_eval(row);
            evals++;
            assert_true(number(row, "epoch") == evals);
            assert_true(seen ==
                        evals * frames); /* the data set, once per epoch */
        }
    }
    assert_true(next == epochs * blocks);
    assert_true(evals == epochs);
    row = json_array_get(all, json_array_size(all) - 1);
    assert_string_equal(text(row, "event"), "end");
    assert_string_equal(text(row, "reason"), "done");
    assert_int_equal(strlen(text(row, "digest")), 32);
    assert_true(number(row, "epochs") == epochs);
    assert_true(number(row, "blocks") == epochs * blocks);
    assert_true(number(row, "frames") == epochs * frames);
    assert_true(number(row, "seconds") > 0);
    assert_phases(run, all);
    json_decref(all);
}

static void test_the_journal_has_every_block(void **state)
{
    program p;

    (void)state;
    for (int ranks = 1; ranks <= 3; ranks += 2) {
        remove_run("timed");
        train(&p, "timed", ranks, "train.epochs=3");
        assert_ended(&p, 0);
        assert_journal("timed", 3);
        assert_true(events("timed", "checkpoint") >= 2);
    }
    remove_run("timed");
    train(&p, "timed", 2,
          "train.epochs=3; job.workers=6; block.frames_total=0; "
          "block.steps=2");
    assert_ended(&p, 0);
    assert_journal("timed", 3);
}

/* Each of two ranks passes on 2 (P - 1) / P of the weights, all of them; on one
 * host in shared memory. */
static void test_the_journal_has_the_bytes_of_an_exchange(void **state)
{
    static const struct {
        const char *settings;
        int ranks;
        bool shares;
    } runs[] = {{"job.sum=ring; job.workers=2", 2, true},
                {"job.sum=tree; job.workers=2", 2, true},
                {"job.coordinator=root; job.workers=2", 2, false},
                {"job.sum=halving", 1, false}};
    program p;

    (void)state;
    FOR_EACH (i, runs) {
        json_t *start = NULL, *block = NULL;
        double bytes = 0;

        remove_run("bytes");
        train(&p, "bytes", runs[i].ranks, runs[i].settings);
        assert_ended(&p, 0);
        start = last_event("bytes", "start");
        block = last_event("bytes", "block");
        bytes = number(block, "sent_bytes") + number(block, "shared_bytes");
        assert_true(bytes ==
                    4 * number(start, "weights") * (runs[i].ranks - 1));
        if (runs[i].shares)
            assert_true(number(block, "sent_bytes") == 0);
        json_decref(start);
        json_decref(block);
    }
}

/* One step per worker; all other frames are in `left`. */
static void check_hasty(const char *settings, const char *batches, double sum)
{
    json_t *all = NULL, *row = NULL, *start = NULL;
    double frames = 0, left = 0;
    size_t i = 0;
    program p;

    remove_run("hasty");
    train(&p, "hasty", 2, settings);
    assert_ended(&p, 0);
    all = journal("hasty");
    start = last_event("hasty", "start");
    json_array_foreach(all, i, row)
    {
        if (strcmp(text(row, "event"), "block") != 0)
            continue;
        assert_string_equal(text(row, "batches_of_workers"), batches);
        assert_true(number(row, "batches") == sum);
        frames += number(row, "frames");
        left += number(row, "left");
    }
    assert_true(left > 0);
    assert_true(frames + left == 2 * number(start, "frames"));
    json_decref(start);
    json_decref(all);
}

static void test_the_journal_has_frames_skipped_for_time(void **state)
{
    (void)state;
    check_hasty("train.epochs=2; block.seconds=1e-9", "1 1 1 1", 4);
    check_hasty("train.epochs=2; block.seconds=1e-9; batch.sequences=1; "
                "batch.accumulate=2",
                "2 2 2 2", 8);
}

/* Averaging has only G, and Delta = G; strategies by step have neither. */
static void test_fields_a_strategy_lacks_are_null(void **state)
{
    static const char *const keys[] = {"g_norm", "delta_norm", "cos_g_delta"};
    static const char *const settings[] = {"train.strategy=average",
                                           "train.strategy=ssgd"};

    (void)state;
    FOR_EACH (i, settings) {
        json_t *all = NULL, *row = NULL;
        size_t k = 0;
        program p;

        remove_run("null");
        train(&p, "null", 2, settings[i]);
        assert_ended(&p, 0);
        assert_true(events("null", "block") > 0);
        all = journal("null");
        json_array_foreach(all, k, row)
        {
            if (strcmp(text(row, "event"), "block") != 0)
                continue;
            FOR_EACH (n, keys)
                assert_int_equal(json_is_null(json_object_get(row, keys[n])),
                                 i == 1 || n == 2);
            if (i == 0)
                assert_true(number(row, keys[0]) > 0 &&
                            number(row, keys[0]) == number(row, keys[1]));
        }
        json_decref(all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_journal_has_every_block),
        cmocka_unit_test(test_the_journal_has_the_bytes_of_an_exchange),
        cmocka_unit_test(test_the_journal_has_frames_skipped_for_time),
        cmocka_unit_test(test_fields_a_strategy_lacks_are_null),
    };

    return cmocka_run_group_tests_name("journal", tests, digits_set_up,
                                       digits_tear_down);
}
