/*
 * Whole runs with errors: one message that names the error, the rank and the
 * file, the right exit code, and no lost checkpoints.
 */
#include "io/shard/dataset.h"
#include "io/shard/shard.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* For a run without end. */
static const char endless[] = "train.epochs=100000; train.checkpoint_every=20; "
                              "train.rate=0.0001; schedule.kind=constant";

/* ---- damaged data ------------------------------------------------------- */

/* Flips all bytes of the features of a data set, not its tables. */
static void spoil(const char *name)
{
    damage(digits_file(name), 0.4, 40000);
}

/* A message names the rank, unless there is only one. */
static void assert_reported_once(const program *p, int ranks)
{
    assert_int_equal(times_said(p, "bmuf: "), 1);
    assert_int_equal(times_said(p, "bmuf: rank "), ranks > 1);
    assert_not_said(p, "killed by");
    assert_not_said(p, "mpirun detected");
    assert_not_said(p, "MPI_ABORT");
}

static void spoil_during(const char *strategy, int ranks)
{
    char settings[256];
    pid_t all[FAMILY];
    json_t *end = NULL;
    double since = 0;
    size_t n = 0;
    program p;

    snprintf(settings, sizeof settings, "%s; data.train=bad; %s", endless,
             strategy);
    remove_run("bad");
    remove_run("fails");
    copy_run("train", "bad");
    train_start(&p, "fails", ranks, settings);
    assert_true(event_comes(&p, "fails", "checkpoint", 1));
    n = family(&p, all);
    since = now();
    spoil("bad");
    assert_ended(&p, 65);
    assert_gone(all, n);
    assert_true(now() - since < 10);
    assert_reported_once(&p, ranks);
    assert_said(&p, "bad/data-00000.bmuf.h5");
    assert_said(&p, "unit ");
    end = last_event("fails", "end");
    assert_non_null(strstr(text(end, "message"), "bad/data-00000.bmuf.h5"));
    assert_null(strstr(text(end, "message"), ".c:")); /* no source file */
    assert_string_equal(text(end, "reason"), "file has unexpected contents");
    assert_true(number(end, "blocks") > 0 && number(end, "frames") > 0);
    assert_true(json_is_null(json_object_get(end, "digest")));
    json_decref(end);
}

static void test_a_damaged_shard_ends_training(void **state)
{
    (void)state;
    spoil_during("train.strategy=bmuf", 1);
    spoil_during("train.strategy=bmuf", 3);
    spoil_during("train.strategy=ssgd", 2);
}

static void test_a_damaged_dev_set_ends_training(void **state)
{
    program p;

    (void)state;
    for (int ranks = 1; ranks <= 2; ranks++) {
        remove_run("bad");
        remove_run("fails");
        copy_run("dev", "bad");
        damage(digits_file("bad"), 0.5, 5000);
        train(&p, "fails", ranks, "data.dev=bad");
        assert_ended(&p, 65);
        assert_reported_once(&p, ranks);
        assert_said(&p, "bad/data-00000.bmuf.h5");
        assert_int_equal(events("fails", "block"), 4);
    }
}

static void test_missing_data_are_reported_once(void **state)
{
    static const struct {
        const char *settings, *words;
        int code;
    } rows[] = {{"data.train=nowhere", "nowhere", 66},
                {"data.dev=nowhere", "nowhere", 66},
                {"model.net=blstm:12 linear:5", "outputs, but there are", 78},
                {"model.net=blstm:12", "24 outputs", 78}};
    program p;

    (void)state;
    FOR_EACH (i, rows)
        for (int ranks = 1; ranks <= 2; ranks++) {
            remove_run("fails");
            train(&p, "fails", ranks, rows[i].settings);
            assert_ended(&p, rows[i].code);
            assert_said(&p, rows[i].words);
            assert_reported_once(&p, ranks);
        }
}

/* ---- damaged checkpoints ------------------------------------------------ */

static const char short_run[] = "train.epochs=3; train.keep=4";

/* Ways to damage a checkpoint. */
typedef void (*spoiler)(const char *path);

static void truncate_it(const char *path)
{
    cut_off(path, 0.7);
}

static void empty_it(const char *path)
{
    cut_off(path, 0);
}

static void flip_a_weight(const char *path)
{
    damage(path, 0.6, 1);
}

static void flip_the_header(const char *path)
{
    damage(path, 0.01, 1);
}

static void flip_the_sum(const char *path)
{
    damage(path, 0.9999, 1);
}

static void test_a_damaged_checkpoint_is_skipped(void **state)
{
    static const spoiler ways[] = {truncate_it, empty_it, flip_a_weight,
                                   flip_the_header, flip_the_sum};
    program p;

    (void)state;
    remove_run("straight");
    train(&p, "straight", 1, short_run);
    assert_ended(&p, 0);
    FOR_EACH (i, ways) {
        char damaged[400];

        copy_run("straight", "spoiled");
        snprintf(damaged, sizeof damaged, "%s", checkpoint_of("spoiled", 12));
        ways[i](damaged);
        train(&p, "spoiled", 1 + (int)i % 3, short_run);
        assert_ended(&p, 0);
        assert_int_equal(times_said(&p, "block-00000012.safetensors, trying"),
                         1);
        assert_said(&p, "resuming from");
        assert_said(&p, "block-00000010.safetensors");
        assert_same_model("straight", "spoiled");
    }
}

static void test_two_damaged_checkpoints_are_skipped(void **state)
{
    program p;

    (void)state;
    copy_run("straight", "spoiled");
    truncate_it(checkpoint_of("spoiled", 12));
    flip_a_weight(checkpoint_of("spoiled", 10));
    train(&p, "spoiled", 2, short_run);
    assert_ended(&p, 0);
    assert_int_equal(times_said(&p, "skipped checkpoint"), 2);
    assert_same_model("straight", "spoiled");
}

static void test_only_damaged_checkpoints_are_an_error(void **state)
{
    int newest = 0, n = 0;
    program p;

    (void)state;
    copy_run("straight", "spoiled");
    n = checkpoints("spoiled", &newest);
    assert_int_equal(n, 4);
    for (int k = 6; k <= 12; k += 2)
        flip_a_weight(checkpoint_of("spoiled", k));
    copy_run("spoiled", "before");
    for (int ranks = 1; ranks <= 2; ranks++) {
        train(&p, "spoiled", ranks, short_run);
        assert_ended(&p, 65);
        assert_int_equal(times_said(&p, "skipped checkpoint"), 4);
        assert_said(&p, "none of the 4 checkpoints");
        assert_reported_once(&p, ranks);
        assert_int_equal(checkpoints("spoiled", &newest), 4);
        for (int k = 6; k <= 12; k += 2) {
            size_t size[2];
            char *a = slurp(checkpoint_of("spoiled", k), &size[0]);
            char *b = slurp(checkpoint_of("before", k), &size[1]);
            assert_int_equal(size[0], size[1]);
            assert_memory_equal(a, b, size[0]);
            free(a);
            free(b);
        }
    }
}

static void test_files_of_interrupted_saves_are_removed(void **state)
{
    static const char name[] = "spoiled/checkpoints/"
                               ".01234567.block-00000099.safetensors.tmp";
    program p;

    (void)state;
    copy_run("straight", "spoiled");
    assert_int_equal(unlink(checkpoint_of("spoiled", 12)), 0);
    write_text(name, "half a checkpoint");
    train(&p, "spoiled", 1, short_run);
    assert_ended(&p, 0);
    assert_same_model("straight", "spoiled");
    assert_int_not_equal(access(in_folder(name), F_OK), 0);
}

/* ---- two jobs ----------------------------------------------------------- */

static void test_a_second_job_in_a_directory_is_rejected(void **state)
{
    program first, second;

    (void)state;
    remove_run("shared");
    train_start(&first, "shared", 2, endless);
    assert_true(event_comes(&first, "shared", "block", 5));
    for (int ranks = 1; ranks <= 2; ranks++) {
        train(&second, "shared", ranks, endless);
        assert_ended(&second, 73);
        assert_said(&second, "in use by another job");
        assert_reported_once(&second, 1); /* the supervisor finds it */
        assert_true(program_runs(&first));
    }
    assert_int_equal(events("shared", "start"), 1);
    kill(first.pid, SIGTERM);
    assert_ended(&first, 75);
    assert_not_said(&first, "bmuf: ");
}

static void test_a_directory_that_is_no_run_is_not_changed(void **state)
{
    program p;

    (void)state;
    remove_run("mine");
    copy_run("train", "mine");
    train(&p, "mine", 1, "");
    assert_ended(&p, 73);
    assert_said(&p, "is not a run");
}

/* ---- values that are not finite ----------------------------------------- */

static void assert_diverges(const char *settings, int ranks)
{
    char newest_one[64];
    int newest = 0;
    program p;

    remove_run("absurd");
    for (int again = 0; again < 2; again++) {
        train(&p, "absurd", ranks, settings);
        assert_ended(&p, 76);
        assert_said(&p, "has diverged");
        assert_reported_once(&p, ranks);
        if (again)
            assert_said(&p, newest_one); /* which was intact */
        assert_not_said(&p, "skipped checkpoint");
        assert_true(checkpoints("absurd", &newest) > 0);
        snprintf(newest_one, sizeof newest_one, "block-%08d", newest);
    }
    assert_int_not_equal(access(in_folder("absurd/model.safetensors"), F_OK),
                         0);
}

static void test_divergence_ends_training_and_keeps_the_checkpoint(void **state)
{
    static const char *const strategies[] = {"bmuf", "average", "ssgd"};
    char settings[256];

    (void)state;
    FOR_EACH (i, strategies)
        for (int ranks = 1; ranks <= 2; ranks++) {
            snprintf(settings, sizeof settings,
                     "train.strategy=%s; train.rate=1000; sgd.clip=0; "
                     "model.net=linear:20 relu linear:20 relu linear; "
                     "train.checkpoint_every=1; train.epochs=8",
                     strategies[i]);
            assert_diverges(settings, ranks);
        }
}

/* A copy of "train" with a value of one sequence replaced, or all scaled up;
 * sequence -1: of each. */
static void make_sick(const char *name, int sequence, float value, float scale)
{
    bm_shard_settings settings = {
        .unit_frames = 60, .shard_mb = 1, .store = "f32"};
    bm_shard_meta meta = {0};
    bm_shard_writer *w = NULL;
    bm_shard *s = NULL;
    bm_sequences unit = {0};
    size_t n = 0, shards = 0;

    assert_ok(bm_shard_open(&s, digits_file("train")));
    meta.features = bm_shard_features(s);
    meta.vocab = bm_shard_vocab(s);
    meta.features_text = bm_shard_features_text(s);
    meta.frame_shift = bm_shard_frame_shift(s);
    run_tool((char *[]){"mkdir", "-p", (char *)in_folder(name), NULL});
    assert_ok(
        bm_shard_writer_open(&w, in_folder(name), "data", &settings, &meta));
    for (size_t u = 0; u < bm_shard_units(s); u++) {
        const int32_t *labels = NULL;
        float *x = NULL;

        assert_ok(bm_shard_read(s, u, &unit));
        x = unit.x;
        labels = unit.targets;
        for (size_t i = 0; i < unit.n; i++, n++) {
            size_t size = (size_t)unit.frames[i] * meta.features;
            const char *tag = NULL;

            assert_ok(bm_shard_tag(s, n, &tag));
            bool sick = sequence < 0 || (int)n == sequence;

            if (sick)
                x[17] = value;
            for (size_t k = 0; sick && k < size; k++)
                x[k] *= scale;
            assert_ok(bm_shard_writer_add(w, tag, NULL, x,
                                          (size_t)unit.frames[i], labels,
                                          (size_t)unit.labels[i]));
            x += size;
            labels += unit.labels[i];
        }
    }
    assert_ok(bm_shard_writer_finish(w, &shards));
    assert_int_equal(shards, 1);
    bm_shard_writer_close(w);
    bm_sequences_free(&unit);
    bm_shard_close(s);
}

/* The sum of a field over all blocks. */
static double sum_of(const char *run, const char *key)
{
    json_t *all = journal(run), *row = NULL;
    size_t i = 0;
    double sum = 0;

    json_array_foreach(all, i, row)
    {
        if (strcmp(text(row, "event"), "block") == 0)
            sum += number(row, key);
    }
    json_decref(all);
    return sum;
}

static void test_a_sequence_with_a_nan_is_skipped_and_counted(void **state)
{
    static const char settings[] = "data.train=sick; train.epochs=3";
    program p;

    (void)state;
    remove_run("sick");
    make_sick("sick", 7, NAN, 1);
    for (int ranks = 1; ranks <= 2; ranks++) {
        const char *run = ranks == 1 ? "one" : "two";
        remove_run(run);
        train(&p, run, ranks, settings);
        assert_ended(&p, 0);
        assert_true(sum_of(run, "skipped") == 3); /* once an epoch */
        assert_true(sum_of(run, "bad_steps") == 0);
        assert_true(sum_of(run, "left_out") == 0);
    }
    assert_same_model("one", "two");
}

static void test_data_of_nothing_but_nan_are_reported_once(void **state)
{
    program p;

    (void)state;
    remove_run("sick");
    make_sick("sick", -1, NAN, 1);
    for (int ranks = 1; ranks <= 2; ranks++) {
        remove_run("fails");
        train(&p, "fails", ranks, "data.train=sick");
        assert_ended(&p, 65);
        assert_said(&p, "nothing in epoch 1 can be learned from: the features "
                        "of all sequences are NaN or infinite");
        assert_reported_once(&p, ranks);
    }
}

/* Activations of one sequence overflow, and gradients with them, in every
 * epoch. */
static void test_skipped_steps_are_warned_of_once(void **state)
{
    program p;

    (void)state;
    remove_run("huge");
    make_sick("huge", 7, 3e38f, 1);
    remove_run("steps");
    train(&p, "steps", 2,
          "data.train=huge; train.epochs=3; "
          "model.net=scale:10 linear:20 relu linear");
    assert_ended(&p, 0);
    assert_true(sum_of("steps", "bad_steps") == 3);
    assert_int_equal(times_said(&p, ": the gradient was NaN or infinite"), 1);
}

/* Warnings in the journal that begin with a worker; all were printed. */
static int warnings_of_workers(const char *run, const program *p)
{
    json_t *all = journal(run);
    int n = 0;

    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *row = json_array_get(all, i);

        if (strcmp(text(row, "event"), "warning") != 0 ||
            strncmp(text(row, "message"), "worker ", 7) != 0)
            continue;
        assert_said(p, text(row, "message"));
        n++;
    }
    json_decref(all);
    return n;
}

/* One sequence of very large features makes its worker diverge: its share is
 * left out and reported once on any number of ranks, and the worker continues
 * normally with each policy for its momentum. */
static void test_a_diverged_worker_is_left_out_and_reported(void **state)
{
    static const char *const policies[] = {"reset", "keep", "average"};
    char settings[256];
    program p;

    (void)state;
    remove_run("wild");
    make_sick("wild", 7, 1, 1e6f);
    FOR_EACH (i, policies) {
        snprintf(settings, sizeof settings,
                 "data.train=wild; train.epochs=3; sgd.clip=0; "
                 "train.rate=0.005; model.net=linear:20 relu linear; "
                 "sgd.local_state=%s",
                 policies[i]);
        for (int ranks = 1; ranks <= 3; ranks += 2) {
            const char *run = ranks == 1 ? "one" : "three";
            int left_out = 0;

            remove_run(run);
            train(&p, run, ranks, settings);
            assert_ended(&p, 0);
            left_out = (int)sum_of(run, "left_out");
            assert_true(left_out > 0 && left_out <= 3); /* once an epoch */
            assert_int_equal(times_said(&p, "is left out of block"), left_out);
            assert_int_equal(warnings_of_workers(run, &p), left_out);
        }
        assert_same_model("one", "three");
    }
}

/* ---- bugs --------------------------------------------------------------- */

/* abort() is what a failed assertion calls. */
static void test_a_bug_has_an_exit_code_of_its_own(void **state)
{
    program p;

    (void)state;
    remove_run("bug");
    train_start(&p, "bug", 1, endless);
    assert_true(event_comes(&p, "bug", "block", 1));
    assert_int_equal(kill(p.pid, SIGABRT), 0);
    assert_ended(&p, 70);
}

/* ---- infeasible sequences ----------------------------------------------- */

static const char too_long[] =
    "zero one two three four five six seven eight nine zero one two three four "
    "five six seven eight nine zero one two three four five six seven eight "
    "nine zero one two three four five six seven eight nine zero one two three";

/* The id of the first recording of a data set. */
static void first_tag(const char *name, char *out, size_t room)
{
    const char *tag = NULL;
    bm_shard *s = NULL;

    assert_ok(bm_shard_open(&s, digits_file(name)));
    assert_ok(bm_shard_tag(s, 0, &tag));
    snprintf(out, room, "%s", tag);
    bm_shard_close(s);
}

static void test_infeasible_sequences_follow_the_policy(void **state)
{
    char tag[64];
    program p;

    (void)state;
    remove_run("long");
    digits_pack("long", 60, too_long);
    first_tag("long", tag, sizeof tag);
    for (int ranks = 1; ranks <= 3; ranks += 2) {
        remove_run("skips");
        train(&p, "skips", ranks, "data.train=long");
        assert_ended(&p, 0);
        assert_true(sum_of("skips", "skipped") == 2); /* once an epoch */
        assert_int_equal(times_said(&p, "do not fit into"), 2);
        assert_int_equal(times_said(&p, " have more labels than model.net "
                                        "leaves frames: skipped"),
                         1);
        assert_said(&p, tag);
        remove_run("counts");
        train(&p, "counts", ranks, "data.train=long; model.infeasible=zero");
        assert_ended(&p, 0);
        assert_true(sum_of("counts", "zeroed") == 2);
        assert_true(sum_of("counts", "skipped") == 0);
        /* At the start, and once an epoch. */
        assert_int_equal(times_said(&p, "counted with loss 0"), 3);
        remove_run("refuses");
        train(&p, "refuses", ranks, "data.train=long; model.infeasible=error");
        assert_ended(&p, 65);
        assert_reported_once(&p, ranks);
        assert_said(&p, tag);
        remove_run("refuses");
        train(&p, "refuses", ranks, "data.dev=long; model.infeasible=error");
        assert_ended(&p, 65);
        assert_reported_once(&p, ranks);
        assert_said(&p, tag);
    }
}

/* In the order of the file the first block has that sequence alone. */
#define BLOCKS_OF_ONE                                                          \
    "data.train=long; data.dev=; batch.order=file; batch.sequences=1; "        \
    "block.frames_total=0; block.steps=1; job.workers=1; "                     \
    "train.rate=0.001; train.diverged=0; schedule.kind=constant; "             \
    "train.checkpoint_every=1; train.strategy="

static void test_a_block_without_usable_sequences_is_warned_of(void **state)
{
    static const char *const strategies[] = {"average", "local"};
    char all[400], first[440];
    program p;

    (void)state;
    remove_run("long");
    digits_pack("long", 60, too_long);
    FOR_EACH (i, strategies) {
        snprintf(all, sizeof all, BLOCKS_OF_ONE "%s", strategies[i]);
        snprintf(first, sizeof first, "%s; --until 1", all);
        remove_run("straight");
        train(&p, "straight", 1, all);
        assert_ended(&p, 0);
        assert_int_equal(
            times_said(&p, "can be learned from: all sequences have more "
                           "labels than model.net leaves frames; the block "
                           "changes nothing"),
            2);
        assert_int_equal(times_said(&p, "loss -nan"), 0);
        assert_int_equal(times_said(&p, "loss nan"), 0);
        assert_true(sum_of("straight", "skipped") == 2);
        remove_run("halted");
        train(&p, "halted", 1, first);
        assert_ended(&p, 0);
        train(&p, "halted", 1, all);
        assert_ended(&p, 0);
        assert_same_model("straight", "halted");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_damaged_shard_ends_training),
        cmocka_unit_test(test_a_damaged_dev_set_ends_training),
        cmocka_unit_test(test_missing_data_are_reported_once),
        cmocka_unit_test(test_a_damaged_checkpoint_is_skipped),
        cmocka_unit_test(test_two_damaged_checkpoints_are_skipped),
        cmocka_unit_test(test_only_damaged_checkpoints_are_an_error),
        cmocka_unit_test(test_files_of_interrupted_saves_are_removed),
        cmocka_unit_test(test_a_second_job_in_a_directory_is_rejected),
        cmocka_unit_test(test_a_directory_that_is_no_run_is_not_changed),
        cmocka_unit_test(
            test_divergence_ends_training_and_keeps_the_checkpoint),
        cmocka_unit_test(test_a_sequence_with_a_nan_is_skipped_and_counted),
        cmocka_unit_test(test_data_of_nothing_but_nan_are_reported_once),
        cmocka_unit_test(test_skipped_steps_are_warned_of_once),
        cmocka_unit_test(test_a_diverged_worker_is_left_out_and_reported),
        cmocka_unit_test(test_a_bug_has_an_exit_code_of_its_own),
        cmocka_unit_test(test_infeasible_sequences_follow_the_policy),
        cmocka_unit_test(test_a_block_without_usable_sequences_is_warned_of),
    };

    return cmocka_run_group_tests_name("faults", tests, digits_set_up,
                                       digits_tear_down);
}
