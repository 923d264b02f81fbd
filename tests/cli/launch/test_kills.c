/*
 * Runs that are killed at random times: all processes exit, the message names
 * the rank, and the resumed run ends with the model of an undisturbed run.
 */
#include "core/rng.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* 600 blocks, enough for several kills. */
static const char settings[] =
    "--max-restarts 0; train.epochs=150; schedule.kind=constant; "
    "train.checkpoint_every=3";

static bm_rng chance;

static int draw(int n)
{
    return (int)(bm_rng_uniform(&chance) * n);
}

/* A living rank of the program, or 0. */
static pid_t some_rank(const program *p, int *rank)
{
    pid_t all[FAMILY], ranks[FAMILY];
    size_t n = family(p, all), found = 0;

    for (size_t i = 0; i < n; i++)
        if (rank_of(all[i]) >= 0)
            ranks[found++] = all[i];
    if (found == 0)
        return 0;
    found = (size_t)draw((int)found);
    *rank = rank_of(ranks[found]);
    return ranks[found];
}

/* What holds after every kill. */
static void assert_left(program *p, const pid_t *all, size_t n)
{
    double since = now();

    program_wait(p);
    assert_gone(all, n);
    assert_true(now() - since < 10);
}

static void kill_everything(program *p)
{
    pid_t all[FAMILY];
    size_t n = family(p, all);

    kill(p->pid, SIGKILL);
    assert_left(p, all, n);
    if (p->code != 0) /* 0: the run had finished */
        assert_int_equal(p->code, 128 + SIGKILL);
}

/* mpirun may not know a rank that dies early; after a block it does (known). */
static void kill_one_rank(program *p, bool known)
{
    char words[64];
    pid_t all[FAMILY];
    size_t n = family(p, all);
    int rank = -1;
    pid_t one = some_rank(p, &rank);

    if (one == 0 || rank < 0) { /* not started, or exited */
        kill_everything(p);
        return;
    }
    kill(one, SIGKILL);
    assert_left(p, all, n);
    if (p->code == 0) /* the run had finished */
        return;
    /* Open MPI 4.1 may wait without limit for a rank that dies in MPI_Init. */
    assert_true(p->code == 128 + SIGKILL || p->code == 69);
    snprintf(words, sizeof words,
             p->code == 69 ? "rank %d died, but mpirun kept waiting for it"
                           : "rank %d on ",
             rank);
    if (!known && p->code == 69) /* others may die of it in the same instant */
        assert_said(p, "died, but mpirun kept waiting for it");
    else if (known || times_said(p, "mpirun or a rank") == 0)
        assert_said(p, words);
    if (p->code != 69)
        assert_said(p, "was killed by signal 9");
    assert_int_equal(times_said(p, "bmuf: "), 1);
}

/* Some time after the start, or after the first block. */
static void wait_a_while(program *p, const char *run, int blocks)
{
    double until = 0;

    if (draw(4) > 0)
        event_comes(p, run, "block", blocks + 1);
    until = now() + 0.6 * bm_rng_uniform(&chance);
    while (now() < until && program_runs(p))
        pause_for(0.001);
}

/* Starts or resumes a run and kills it at a random time. Returns whether it was
 * killed before its end. */
static bool disturb(const char *run, int ranks, bool whole)
{
    int blocks = events(run, "block");
    program p;

    train_start(&p, run, ranks, settings);
    wait_a_while(&p, run, blocks);
    print_message("%d rank%s, %s killed: %d blocks, and %d\n", ranks,
                  ranks > 1 ? "s" : "", whole ? "all" : "one", blocks,
                  events(run, "block") - blocks);
    if (!program_runs(&p)) {
        assert_ended(&p, 0);
        return false;
    }
    if (whole || ranks == 1)
        kill_everything(&p);
    else
        kill_one_rank(&p, events(run, "block") > blocks);
    return p.code != 0;
}

static void test_killed_runs_resume_to_the_same_model(void **state)
{
    int kills = short_tests() ? 5 : 20, killed = 0;
    program p;

    (void)state;
    train(&p, "straight", 1, settings);
    assert_ended(&p, 0);
    for (int i = 0; killed < kills; i++) {
        if (disturb("killed", 1 + i % 4, draw(2) == 0)) {
            killed++;
            continue;
        }
        assert_same_model("straight", "killed");
        remove_run("killed");
    }
    train(&p, "killed", 2, settings);
    assert_ended(&p, 0);
    assert_same_model("straight", "killed");
}

/* The process that the program started: mpirun. */
static pid_t launcher(const program *p)
{
    pid_t all[FAMILY];
    size_t n = family(p, all);

    for (size_t i = 0; i < n; i++)
        if (rank_of(all[i]) < 0)
            return all[i];
    return 0;
}

/* Whether a rank holds its lock; before that its death is not detected. */
static bool has_signed(int rank)
{
    char pattern[200];
    glob_t found = {0};
    bool there;

    snprintf(pattern, sizeof pattern, "%s/bmuf-*/rank-%d", in_folder(""), rank);
    there = glob(pattern, 0, NULL, &found) == 0;
    globfree(&found);
    return there;
}

/* A stopped mpirun notices no death. */
static void test_a_death_that_mpirun_misses_is_reported(void **state)
{
    pid_t all[FAMILY], one = 0;
    int rank = -1, trials = 4;
    char words[64];
    size_t n = 0;
    program p;

    (void)state;
    for (int i = 0; i < trials; i++) {
        remove_run("bereft");
        train_start(&p, "bereft", 3, settings);
        while (program_runs(&p) &&
               ((one = some_rank(&p, &rank)) == 0 || !has_signed(rank)))
            pause_for(0.001);
        if (i % 2 == 0)
            pause_for(0.02); /* they enter MPI_Init */
        else
            assert_true(event_comes(&p, "bereft", "start", 1));
        n = family(&p, all);
        assert_int_equal(kill(launcher(&p), SIGSTOP), 0);
        assert_int_equal(kill(one, SIGKILL), 0);
        assert_left(&p, all, n);
        assert_int_equal(p.code, 69);
        snprintf(words, sizeof words, "rank %d died", rank);
        assert_said(&p, words);
        assert_said(&p, "to resume from the last checkpoint");
    }
}

/* Only the rank itself can notice that. */
static void test_a_rank_exits_when_its_launcher_dies(void **state)
{
    static const char *const words[] = {"train", "base.ini",
                                        "--out", "orphan",
                                        "--set", "train.epochs=100000",
                                        "--set", "schedule.kind=constant",
                                        NULL};
    pid_t all[FAMILY];
    double since = now();
    size_t n = 0;
    program p, launcher;

    (void)state;
    program_launch(&p, &launcher, words);
    while (events("orphan", "block") == 0 && now() - since < 30)
        pause_for(0.001);
    assert_true(events("orphan", "block") > 0);
    n = family(&launcher, all);
    since = now();
    assert_int_equal(kill(launcher.pid, SIGKILL), 0);
    program_wait(&launcher);
    assert_ended(&p, 69);
    assert_true(now() - since < 10);
    assert_said(&p, "mpirun has died; exiting");
    assert_gone(all, n);
}

static int prepare(void **state)
{
    chance = bm_rng_make(seed_of_the_day(), "kills", 0);
    return digits_set_up(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_death_that_mpirun_misses_is_reported),
        cmocka_unit_test(test_killed_runs_resume_to_the_same_model),
        cmocka_unit_test(test_a_rank_exits_when_its_launcher_dies),
    };

    return cmocka_run_group_tests_name("kills", tests, prepare,
                                       digits_tear_down);
}
