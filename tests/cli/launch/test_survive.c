/*
 * Runs that lose ranks, or hang, under the supervisor: it restarts them by
 * itself, and they end with the model of an undisturbed run; and stops that
 * reach all processes of a job at once.
 */
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCKS = 800 }; /* half a second at least */
static const char settings[] =
    "train.epochs=200; schedule.kind=constant; train.checkpoint_every=1; "
    "job.hang_limit=2";

/* A living rank with this number, or mpirun with -1. */
static pid_t process_of(const program *p, int rank)
{
    pid_t all[FAMILY];
    size_t n = family(p, all);

    for (size_t i = 0; i < n; i++)
        if (rank_of(all[i]) == rank)
            return all[i];
    return 0;
}

static void start(program *p, const char *run, int ranks, const char *more)
{
    char all[600];

    snprintf(all, sizeof all, "%s%s%s", settings, more[0] != '\0' ? "; " : "",
             more);
    remove_run(run);
    train_start(p, run, ranks, all);
}

/* Sends a signal to a rank, or to mpirun, some blocks after the start. */
static void strike(program *p, const char *run, int rank, int number)
{
    pid_t one = 0;

    assert_true(event_comes(p, run, "block", 5));
    one = process_of(p, rank);
    assert_true(one > 0);
    assert_int_equal(kill(one, number), 0);
}

static void assert_stopped_cleanly(program *p, const char *run)
{
    json_t *end = NULL;
    int newest = 0;

    assert_ended(p, 75);
    end = last_event(run, "end");
    assert_string_equal(text(end, "reason"), "stopped");
    assert_true(checkpoints(run, &newest) > 0);
    assert_int_equal(number(end, "blocks"), newest);
    json_decref(end);
}

/* ---- restarts ------------------------------------------------------------ */

static void test_a_killed_process_is_replaced(void **state)
{
    static const struct {
        int rank;
        const char *words;
    } rows[] = {{1, "rank 1 on "}, {0, "rank 0 on "}, {-1, "mpirun or a rank"}};
    json_t *event = NULL;
    program p;

    (void)state;
    start(&p, "straight", 1, "");
    assert_ended(&p, 0);
    FOR_EACH (i, rows) {
        start(&p, "killed", 2, "");
        assert_true(event_comes(&p, "killed", "block", 3));
        if (i == 0) /* damaged, and of a later block: training skips it */
            write_text("killed/checkpoints/block-00100000.safetensors", "no");
        strike(&p, "killed", rows[i].rank, SIGKILL);
        assert_ended(&p, 0);
        assert_same_model("straight", "killed");
        assert_said(&p, rows[i].words);
        assert_said(&p, "was killed by signal 9 (Killed); restarting from "
                        "block ");
        assert_int_equal(times_said(&p, "restart 1 of at most 100"), 1);
        assert_not_said(&p, "bmuf: ");
        assert_int_equal(events("killed", "restart"), 1);
        assert_int_equal(events("killed", "start"), 2);
        event = last_event("killed", "restart");
        assert_int_equal(number(event, "attempt"), 1);
        assert_int_equal(number(event, "code"), 137);
        assert_true(number(event, "block") >= 3); /* 4 may be half written */
        assert_true(number(event, "block") < 100);
        if (rows[i].rank >= 0)
            assert_int_equal(number(event, "rank"), rows[i].rank);
        json_decref(event);
        event = last_event("killed", "start");
        assert_int_equal(number(event, "attempt"), 2);
        json_decref(event);
    }
}

/* The user has moved the configuration away, and has one for the next run in its
 * place. */
static void test_a_restart_keeps_the_settings(void **state)
{
    char own[200], moved[200];
    program p;

    (void)state;
    start(&p, "shorter", 1, "train.epochs=100");
    assert_ended(&p, 0);
    start(&p, "kept", 2, "train.epochs=100; --until 1000");
    assert_true(event_comes(&p, "kept", "block", 3));
    snprintf(own, sizeof own, "%s", in_folder("base.ini"));
    snprintf(moved, sizeof moved, "%s", in_folder("moved.ini"));
    assert_int_equal(rename(own, moved), 0);
    write_text("base.ini", "[data]\ntrain = other\n[model]\nnet = linear\n");
    strike(&p, "kept", 1, SIGKILL);
    program_wait(&p);
    assert_int_equal(rename(moved, own), 0);
    assert_ended(&p, 0);
    assert_int_equal(events("kept", "start"), 2);
    assert_said(&p, " train --verbose --until 1000 --out kept kept");
    assert_same_model("shorter", "kept");
}

/* Whether lines of a log are of more than one day. */
static bool has_days(const char *path)
{
    enum { DAY = 10 }; /* 2026-11-23 */
    size_t size = 0;
    char *all = slurp(path, &size), *line = NULL, *rest = NULL;
    char first[DAY + 1] = "";
    bool differ = false;

    for (line = strtok_r(all, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "20", 2) != 0)
            continue;
        differ = differ || (first[0] != '\0' && strncmp(line, first, DAY) != 0);
        snprintf(first, sizeof first, "%.10s", line);
    }
    free(all);
    return differ;
}

/* Limits are measured on the monotonic clock: nothing restarts. */
static void test_a_clock_that_jumps_changes_nothing(void **state)
{
    program p;

    (void)state;
    start(&p, "straight", 1, "");
    assert_ended(&p, 0);
    remove_run("jumps");
    setenv("LD_PRELOAD", BMUF_FAKE_CLOCK, 1);
    setenv("BMUF_CLOCK", "5", 1);
    train_start(&p, "jumps", 2, settings);
    unsetenv("LD_PRELOAD");
    unsetenv("BMUF_CLOCK");
    program_wait(&p);
    assert_ended(&p, 0);
    assert_true(has_days(p.err));
    assert_same_model("straight", "jumps");
    assert_int_equal(events("jumps", "start"), 1);
    assert_int_equal(events("jumps", "restart"), 0);
}

static void test_restarts_are_limited(void **state)
{
    program p;

    (void)state;
    start(&p, "limited", 2, "--max-restarts 1");
    strike(&p, "limited", 1, SIGKILL);
    assert_true(event_comes(&p, "limited", "start", 2));
    assert_true(
        event_comes(&p, "limited", "block", events("limited", "block") + 5));
    assert_int_equal(kill(process_of(&p, 0), SIGKILL), 0);
    assert_ended(&p, 137);
    assert_said(&p, "no restart: --max-restarts allows 1");
    assert_said(&p, "run the same command again to resume");
    assert_int_equal(times_said(&p, "bmuf: "), 1);
}

/* A fault before each first checkpoint. */
static void test_a_job_without_progress_ends(void **state)
{
    program p;

    (void)state;
    start(&p, "futile", 2, "train.checkpoint_every=1000");
    strike(&p, "futile", 1, SIGKILL);
    assert_true(event_comes(&p, "futile", "start", 2));
    assert_true(process_of(&p, 1) > 0);
    assert_int_equal(kill(process_of(&p, 1), SIGKILL), 0);
    assert_ended(&p, 137);
    assert_said(&p, "restart 1 of at most 100");
    assert_said(&p, "no checkpoint newer than block");
    assert_int_equal(events("futile", "restart"), 1);
}

static void test_what_would_happen_again_is_not_restarted(void **state)
{
    program p;

    (void)state;
    start(&p, "invalid", 2, "model.net=blstm:12 linear:5");
    assert_ended(&p, 78);
    assert_not_said(&p, "restart");
    start(&p, "absurd", 2,
          "train.rate=1000; sgd.clip=0; "
          "model.net=linear:20 relu linear:20 relu linear");
    assert_ended(&p, 76);
    assert_not_said(&p, "restart");
}

/* ---- the watchdog -------------------------------------------------------- */

static void test_a_stopped_rank_is_named_and_replaced(void **state)
{
    char words[100];
    json_t *event = NULL;
    double since = 0;
    pid_t one = 0;
    program p;

    (void)state;
    start(&p, "stopped", 2, "");
    assert_true(event_comes(&p, "stopped", "block", 5));
    one = process_of(&p, 1);
    since = now();
    assert_int_equal(kill(one, SIGSTOP), 0);
    assert_true(event_comes(&p, "stopped", "start", 2));
    assert_true(now() - since < 10);
    assert_gone(&one, 1);
    assert_ended(&p, 0);
    assert_same_model("straight", "stopped");
    snprintf(words, sizeof words, "(process %ld, which is stopped) has given ",
             (long)one);
    assert_int_equal(times_said(&p, words), 2); /* a warning, and the end */
    assert_said(&p, "no sign of life for 2 s, in phase ");
    snprintf(words, sizeof words, "rank 1: stack of process %ld:", (long)one);
    assert_said(&p, words);
    event = last_event("stopped", "restart");
    assert_int_equal(number(event, "rank"), 1);
    assert_true(number(event, "hung_s") > 2);
    assert_true(strlen(text(event, "phase")) > 0);
    json_decref(event);
}

/* Others wait for the shard that it serves. Which bits a run in real time has
 * depends on the order of messages. It has no end of its own, so that a slow
 * machine has as long as it takes. */
static void test_a_stopped_server_is_replaced(void **state)
{
    program p;

    (void)state;
    start(&p, "server", 2,
          "train.strategy=asgd; asgd.scaling=inverse; clock.kind=real; "
          "job.workers=2; train.epochs=100000");
    strike(&p, "server", 1, SIGSTOP);
    assert_true(event_comes(&p, "server", "start", 2));
    assert_true(
        event_comes(&p, "server", "block", events("server", "block") + 5));
    kill(p.pid, SIGTERM);
    assert_stopped_cleanly(&p, "server");
    assert_said(&p, "which is stopped) has given no sign of life");
    assert_int_equal(events("server", "restart"), 1);
}

/* mpirun may wait without limit for ranks that it could not start. */
static void test_ranks_that_cannot_start_end_the_job(void **state)
{
    char before[8192], path[8192 + 600];
    double since = now();
    program p;

    (void)state;
    write_text("mpirun", "#!/bin/sh\nexec sleep 30\n");
    assert_int_equal(chmod(in_folder("mpirun"), 0700), 0);
    snprintf(before, sizeof before, "%s", getenv("PATH"));
    snprintf(path, sizeof path, "%s:%s", in_folder("."), before);
    setenv("PATH", path, 1);
    start(&p, "few", 2, "job.start_limit=3");
    setenv("PATH", before, 1);
    assert_ended(&p, 69);
    assert_true(now() - since < 20);
    assert_said(&p, "rank 0 of 2 has not started after 3 s (job.start_limit)");
    assert_not_said(&p, "restart");
    assert_int_equal(unlink(in_folder("mpirun")), 0);
}

/* ---- stops --------------------------------------------------------------- */

/* As systemd and scancel do. The order is that of /proc, and its reverse. */
static void test_a_signal_to_all_processes_stops_cleanly(void **state)
{
    pid_t all[FAMILY];
    size_t n = 0;
    program p;

    (void)state;
    for (int turn = 0; turn < 4; turn++) {
        int signal_ = turn < 2 ? SIGTERM : SIGINT;

        start(&p, "group", 2, "train.checkpoint_every=1000");
        assert_true(event_comes(&p, "group", "block", 5));
        n = family(&p, all);
        assert_int_equal(n, 3);
        for (size_t i = 0; i < n && turn % 2 == 0; i++)
            kill(all[i], signal_);
        kill(p.pid, signal_);
        for (size_t i = n; i-- > 0 && turn % 2 == 1;)
            kill(all[i], signal_);
        assert_stopped_cleanly(&p, "group");
        assert_gone(all, n);
    }
}

static void test_the_supervisor_takes_sigusr1(void **state)
{
    program p;

    (void)state;
    start(&p, "preempted", 2, "train.checkpoint_every=1000");
    assert_true(event_comes(&p, "preempted", "block", 5));
    for (int i = 0; i < 3; i++) {
        kill(p.pid, SIGUSR1);
        pause_for(0.06);
    }
    assert_stopped_cleanly(&p, "preempted");
}

static void test_a_stopped_rank_is_continued_to_stop(void **state)
{
    program p;

    (void)state;
    start(&p, "woken", 2, "job.hang_limit=60; train.checkpoint_every=1000");
    strike(&p, "woken", 1, SIGSTOP);
    pause_for(0.5);
    kill(p.pid, SIGTERM);
    assert_stopped_cleanly(&p, "woken");
    assert_said(&p, "is stopped: continuing it, so that the job can end");
}

static void test_an_ignored_signal_stays_ignored(void **state)
{
    program p;

    (void)state;
    for (int ranks = 1; ranks <= 2; ranks++) {
        signal(SIGHUP, SIG_IGN); /* as nohup does */
        start(&p, "nohup", ranks, "");
        signal(SIGHUP, SIG_DFL);
        assert_true(event_comes(&p, "nohup", "block", 5));
        kill(p.pid, SIGHUP);
        assert_ended(&p, 0);
        assert_same_model("straight", "nohup");
    }
}

/* ---- ghosts -------------------------------------------------------------- */

/* A process that was stopped, on a file system without locks: another job has
 * finished the run when it goes on. */
static void test_a_ghost_writes_nothing(void **state)
{
    static const char *const files[] = {
        "ghost/journal.jsonl", "ghost/model.safetensors", "ghost/attempt"};
    program ghost, p;
    char *before[3];
    size_t size[3], n = 0;
    int newest = 0, left = 0;

    (void)state;
    start(&ghost, "ghost", 1, "");
    assert_true(event_comes(&ghost, "ghost", "block", 20));
    assert_int_equal(kill(ghost.pid, SIGSTOP), 0);
    assert_int_equal(unlink(in_folder("ghost/run.lock")), 0);
    train(&p, "ghost", 2, settings);
    assert_ended(&p, 0);
    assert_same_model("straight", "ghost");
    left = checkpoints("ghost", &newest);
    FOR_EACH (i, files)
        before[i] = slurp(in_folder(files[i]), &size[i]);
    assert_int_equal(kill(ghost.pid, SIGCONT), 0);
    assert_ended(&ghost, 69);
    assert_said(&ghost, "attempt 2 of this run has begun");
    FOR_EACH (i, files) {
        char *after = slurp(in_folder(files[i]), &n);

        assert_int_equal(n, size[i]);
        assert_memory_equal(after, before[i], n);
        free(after);
        free(before[i]);
    }
    assert_int_equal(checkpoints("ghost", &newest), left);
    assert_int_equal(newest, BLOCKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_killed_process_is_replaced),
        cmocka_unit_test(test_a_restart_keeps_the_settings),
        cmocka_unit_test(test_a_clock_that_jumps_changes_nothing),
        cmocka_unit_test(test_restarts_are_limited),
        cmocka_unit_test(test_a_job_without_progress_ends),
        cmocka_unit_test(test_what_would_happen_again_is_not_restarted),
        cmocka_unit_test(test_a_stopped_rank_is_named_and_replaced),
        cmocka_unit_test(test_a_stopped_server_is_replaced),
        cmocka_unit_test(test_ranks_that_cannot_start_end_the_job),
        cmocka_unit_test(test_a_signal_to_all_processes_stops_cleanly),
        cmocka_unit_test(test_the_supervisor_takes_sigusr1),
        cmocka_unit_test(test_a_stopped_rank_is_continued_to_stop),
        cmocka_unit_test(test_an_ignored_signal_stays_ignored),
        cmocka_unit_test(test_a_ghost_writes_nothing),
    };

    return cmocka_run_group_tests_name("survive", tests, digits_set_up,
                                       digits_tear_down);
}
