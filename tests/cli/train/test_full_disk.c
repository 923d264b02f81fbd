/*
 * Training while the disk is full. A limit on the size of files takes the place
 * of the disk: checkpoints and models are larger, the journal is smaller.
 */
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Models have 380 kB, and journals of these tests are smaller. */
static const char small[] = "300000";

static const char endless[] =
    "model.net=blstm:100 linear; train.epochs=100000; "
    "train.checkpoint_every=2; train.rate=0.0001; schedule.kind=constant";

static void limit_process(pid_t process, const char *bytes)
{
    char pid[24], size[40];

    snprintf(pid, sizeof pid, "%d", (int)process);
    snprintf(size, sizeof size, "--fsize=%s:unlimited", bytes);
    run_tool((char *[]){"prlimit", "--pid", pid, size, NULL});
}

/* Limits files that rank 0 writes from now on. */
static void limit(program *p, const char *bytes)
{
    pid_t all[FAMILY];
    size_t n = family(p, all);

    if (n == 0)
        limit_process(p->pid, bytes);
    for (size_t i = 0; i < n; i++)
        if (rank_of(all[i]) == 0)
            limit_process(all[i], bytes);
}

/* The message of the last end event. */
static void assert_end_says(const char *run, const char *words)
{
    json_t *end = last_event(run, "end");

    if (strstr(text(end, "message"), words) == NULL)
        fail_msg("'%s' has no '%s'", text(end, "message"), words);
    json_decref(end);
}

static void test_training_goes_on_while_the_disk_is_full(void **_)
{
    program p;

    (void)_;
    for (int ranks = 1; ranks <= 2; ranks++) {
        int saved = 0, newest = 0;

        remove_run("full");
        train_start(&p, "full", ranks, endless);
        assert_true(event_comes(&p, "full", "checkpoint", 1));
        limit(&p, small);
        assert_true(event_comes(&p, "full", "warning", 1));
        saved = events("full", "checkpoint");
        assert_true(
            event_comes(&p, "full", "block", events("full", "block") + 3));
        assert_true(program_runs(&p));
        assert_int_equal(events("full", "checkpoint"), saved);
        assert_true(said_comes(&p, "training goes on"));
        assert_int_equal(times_said(&p, "no checkpoint of block"), 1);
        limit(&p, "unlimited");
        assert_true(event_comes(&p, "full", "checkpoint", saved + 1));
        kill(p.pid, SIGTERM);
        assert_ended(&p, 75);
        assert_said(&p, "checkpoints are written again, after ");
        assert_true(checkpoints("full", &newest) > 0);
    }
}

static void test_stopping_on_a_full_disk_says_what_is_lost(void **_)
{
    int newest = 0;
    program p;
    char words[80];

    (void)_;
    remove_run("full");
    train_start(&p, "full", 1, endless);
    assert_true(event_comes(&p, "full", "checkpoint", 1));
    limit(&p, small);
    assert_true(event_comes(&p, "full", "warning", 1));
    kill(p.pid, SIGTERM);
    assert_ended(&p, 74);
    assert_true(checkpoints("full", &newest) > 0);
    snprintf(words, sizeof words, "has the blocks after block %d, of ", newest);
    assert_said(&p, words);
    assert_end_says("full", words);
    assert_int_equal(times_said(&p, "bmuf: "), 1);
}

static void test_a_model_that_was_not_written_comes_with_the_next_run(void **_)
{
    static const char short_run[] = "model.net=blstm:100 linear; "
                                    "train.epochs=3; train.checkpoint_every=2";
    program p;

    (void)_;
    train(&p, "straight", 1, short_run);
    assert_ended(&p, 0);
    train_start(&p, "late", 1, short_run);
    limit(&p, small);
    assert_ended(&p, 74);
    assert_said(&p, "model.safetensors");
    assert_said(&p, "it resumes after block ");
    assert_int_not_equal(access(in_folder("late/model.safetensors"), F_OK), 0);
    train(&p, "late", 1, short_run);
    assert_ended(&p, 0);
    assert_same_model("straight", "late");
}

static void test_a_folder_that_was_removed_is_made_again(void **_)
{
    char old[200];
    int newest = 0;
    program p;

    (void)_;
    remove_run("full");
    train_start(&p, "full", 1, endless);
    assert_true(event_comes(&p, "full", "checkpoint", 1));
    snprintf(old, sizeof old, "%s", in_folder("full/checkpoints"));
    assert_int_equal(rename(old, in_folder("full/moved")), 0);
    assert_true(event_comes(&p, "full", "block", events("full", "block") + 6));
    kill(p.pid, SIGTERM);
    assert_ended(&p, 75);
    assert_true(checkpoints("full", &newest) > 0);
}

/* Replaces the folder by a link to something else, also if training makes it
 * again meanwhile. */
static void replace_folder(const char *path)
{
    for (int i = 0; symlink("/dev/null", path) != 0; i++) {
        char moved[240];

        assert_true(i < 10);
        snprintf(moved, sizeof moved, "%s-%d", path, i);
        assert_int_equal(rename(path, moved), 0);
    }
}

/* The model is written, and all ranks agree on that, after the failure. */
static void test_a_missing_last_checkpoint_is_reported_once(void **_)
{
    char folder[200];
    program p;

    (void)_;
    remove_run("full");
    train_start(&p, "full", 2,
                "train.epochs=200; train.checkpoint_every=1; "
                "schedule.kind=constant");
    assert_true(event_comes(&p, "full", "checkpoint", 1));
    snprintf(folder, sizeof folder, "%s", in_folder("full/checkpoints"));
    replace_folder(folder);
    assert_ended(&p, 73);
    assert_said(&p, "the model is complete, but its last checkpoint is not: ");
    assert_int_equal(times_said(&p, "bmuf: "), 1);
    assert_not_said(&p, "MPI_ABORT");
    assert_end_says("full", "its last checkpoint is not");
    assert_int_equal(access(in_folder("full/model.safetensors"), F_OK), 0);
}

/* SIGXFSZ is ignored, which programs inherit: too large a file is an error of
 * write(), as on a full disk. */
static int prepare(void **state)
{
    return signal(SIGXFSZ, SIG_IGN) == SIG_ERR || digits_set_up(state) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training_goes_on_while_the_disk_is_full),
        cmocka_unit_test(test_stopping_on_a_full_disk_says_what_is_lost),
        cmocka_unit_test(
            test_a_model_that_was_not_written_comes_with_the_next_run),
        cmocka_unit_test(test_a_folder_that_was_removed_is_made_again),
        cmocka_unit_test(test_a_missing_last_checkpoint_is_reported_once),
    };

    return cmocka_run_group_tests_name("full_disk", tests, prepare,
                                       digits_tear_down);
}
