/*
 * A run under random faults, one after the other, for a time: it always ends
 * with the model of an undisturbed run. Prints how often each fault was made,
 * how long training stood still, and how jobs ended that the supervisor gave up.
 *
 * BMUF_SOAK_S: for how many seconds; default 20. docs/jobs/reliability.md has the
 * table of half an hour.
 */
#include "core/rng.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 200 blocks. */
static const char settings[] =
    "train.epochs=50; schedule.kind=constant; train.checkpoint_every=1; "
    "train.keep=3; job.hang_limit=2; job.start_limit=20";
static const char run[] = "soaked";

static bm_rng chance;

static int draw(int n)
{
    return (int)(bm_rng_uniform(&chance) * n);
}

/* ---- faults -------------------------------------------------------------- */

/* A living rank; with `mpirun`, mpirun; 0: there is none. */
static pid_t find(const program *p, bool mpirun)
{
    pid_t all[FAMILY], fitting[FAMILY];
    size_t n = family(p, all), found = 0;

    for (size_t i = 0; i < n; i++)
        if ((rank_of(all[i]) < 0) == mpirun)
            fitting[found++] = all[i];
    return found > 0 ? fitting[mpirun ? 0 : draw((int)found)] : 0;
}

static void send(pid_t pid, int number)
{
    if (pid > 0)
        (void)kill(pid, number);
}

static void kill_a_rank(program *p)
{
    send(find(p, false), SIGKILL);
}

static void kill_mpirun(program *p)
{
    send(find(p, true), SIGKILL);
}

static void kill_the_supervisor(program *p)
{
    send(p->pid, SIGKILL);
}

static void to_all(const program *p, int number)
{
    pid_t all[FAMILY];
    size_t n = family(p, all);

    send(p->pid, number);
    for (size_t i = 0; i < n; i++)
        send(all[i], number);
}

static void kill_all(program *p)
{
    to_all(p, SIGKILL);
}

static void stop_a_rank(program *p)
{
    send(find(p, false), SIGSTOP);
}

static void stop_all_ranks(program *p)
{
    pid_t all[FAMILY];
    size_t n = family(p, all);

    for (size_t i = 0; i < n; i++)
        if (rank_of(all[i]) >= 0)
            send(all[i], SIGSTOP);
}

static void stop_mpirun_and_kill_a_rank(program *p)
{
    pid_t rank = find(p, false);

    send(find(p, true), SIGSTOP);
    send(rank, SIGKILL);
}

static void stop_the_supervisor_for_a_second(program *p)
{
    send(p->pid, SIGSTOP);
    pause_for(1);
    send(p->pid, SIGCONT);
}

static void terminate(program *p)
{
    send(p->pid, SIGTERM);
}

static void terminate_all(program *p)
{
    to_all(p, SIGTERM);
}

/* The newest checkpoint, if two older ones are intact; else 0. */
static int dispensable_checkpoint(void)
{
    static int last;
    int newest = 0;

    if (checkpoints(run, &newest) < 3 ||
        (newest >= last && newest < last + 3) ||
        access(checkpoint_of(run, newest), F_OK) != 0)
        return 0;
    last = newest;
    return newest;
}

static void damage_the_newest_checkpoint(program *p)
{
    int newest = dispensable_checkpoint();

    if (newest > 0)
        cut_off(checkpoint_of(run, newest), bm_rng_uniform(&chance));
    kill_all(p);
}

static void remove_the_newest_checkpoint(program *p)
{
    int newest = dispensable_checkpoint();

    if (newest > 0)
        (void)unlink(checkpoint_of(run, newest));
    kill_a_rank(p);
}

/* The machine may be loaded for half an hour: longer than program_wait. */
static void wait_for(program *p)
{
    double since = now();

    while (program_runs(p) && now() - since < 300)
        pause_for(0.01);
    program_wait(p);
}

static void start_a_second_job(program *p)
{
    program second;

    train_start(&second, run, 2, settings);
    wait_for(&second);
    if (program_runs(p))
        assert_int_equal(second.code, 73);
}

/* What follows: the supervisor restarts the ranks, or the job ends, or neither
 * is to happen. */
enum { RESTARTS, ENDS, GOES_ON };

static const struct fault {
    const char *name;
    void (*strike)(program *p);
    int then;
} faults[] = {
    {"SIGKILL to a rank", kill_a_rank, RESTARTS},
    {"SIGKILL to mpirun", kill_mpirun, RESTARTS},
    {"SIGKILL to the supervisor", kill_the_supervisor, ENDS},
    {"SIGKILL to all processes", kill_all, ENDS},
    {"SIGSTOP to a rank", stop_a_rank, RESTARTS},
    {"SIGSTOP to all ranks", stop_all_ranks, RESTARTS},
    {"SIGSTOP to mpirun, SIGKILL to a rank", stop_mpirun_and_kill_a_rank,
     RESTARTS},
    {"SIGSTOP to the supervisor for 1 s", stop_the_supervisor_for_a_second,
     GOES_ON},
    {"SIGTERM to the supervisor", terminate, ENDS},
    {"SIGTERM to all processes", terminate_all, ENDS},
    {"newest checkpoint cut off, all killed", damage_the_newest_checkpoint,
     ENDS},
    {"newest checkpoint removed, a rank killed", remove_the_newest_checkpoint,
     RESTARTS},
    {"a second job on the directory", start_a_second_job, GOES_ON},
};

enum { FAULTS = sizeof faults / sizeof faults[0] };

static struct {
    int made, again, given_up;
    double seconds, most; /* until training went on, of `again` */
} counts[FAULTS];

/* ---- the soak ------------------------------------------------------------ */

/* Waits until a block has been trained in a later start. False: the job has
 * ended. */
static bool trains_again(program *p, int starts)
{
    int blocks = 0;

    if (!event_comes(p, run, "start", starts + 1))
        return false;
    blocks = events(run, "block");
    return event_comes(p, run, "block", blocks + 1);
}

/* Makes a fault some time after the start; returns whether the job still
 * runs. */
static bool disturb(program *p, int k)
{
    int starts = 0;
    double since = 0, seconds = 0;

    pause_for(2 * bm_rng_uniform(&chance) * bm_rng_uniform(&chance));
    if (!program_runs(p))
        return false;
    starts = events(run, "start");
    counts[k].made++;
    since = now();
    faults[k].strike(p);
    if (faults[k].then == GOES_ON)
        return program_runs(p);
    if (faults[k].then == ENDS) {
        wait_for(p);
        return false;
    }
    if (!trains_again(p, starts))
        return false;
    seconds = now() - since;
    counts[k].again++;
    counts[k].seconds += seconds;
    counts[k].most = fmax(counts[k].most, seconds);
    return true;
}

/* Exit codes that a fault may have: it was finished before; a stop; killed and
 * no new checkpoint since a restart; the second job was first. */
static void assert_allowed(program *p, int k)
{
    static const int allowed[] = {0, 75, 69, 128 + SIGKILL, 128 + SIGTERM};

    if (faults[k].strike == start_a_second_job && p->code == 73)
        return;

    FOR_EACH (i, allowed)
        if (p->code == allowed[i])
            return;
    print_message("after %s:\n", faults[k].name);
    assert_ended(p, 0); /* prints what it said */
}

static void print_counts(int runs)
{
    print_message("%d runs with the bits of the undisturbed one\n", runs);
    for (int k = 0; k < FAULTS; k++)
        print_message("| %s | %d | %d | %.1f | %.1f | %d |\n", faults[k].name,
                      counts[k].made, counts[k].again,
                      counts[k].seconds / fmax(counts[k].again, 1),
                      counts[k].most, counts[k].given_up);
}

static void test_random_faults_change_no_bits(void **state)
{
    const char *given = getenv("BMUF_SOAK_S");
    double until = now() + (given != NULL ? strtod(given, NULL) : 20);
    int runs = 0, k = 0;
    bool going = false;
    program p = {0};

    (void)state;
    train(&p, "straight", 1, settings);
    assert_ended(&p, 0);
    while (now() < until) {
        if (!going)
            train_start(&p, run, 2 + draw(3), settings);
        k = draw(FAULTS);
        going = disturb(&p, k);
        if (going)
            continue;
        wait_for(&p);
        assert_allowed(&p, k);
        counts[k].given_up +=
            faults[k].then == RESTARTS && p.code != 0 && p.code != 75;
        if (p.code == 0) {
            assert_same_model("straight", run);
            remove_run(run);
            runs++;
        }
    }
    if (going)
        wait_for(&p);
    train_start(&p, run, 2, settings);
    wait_for(&p);
    assert_ended(&p, 0);
    assert_same_model("straight", run);
    print_counts(runs + 1);
}

static int prepare(void **state)
{
    chance = bm_rng_make(seed_of_the_day(), "soak", 0);
    return digits_set_up(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_faults_change_no_bits),
    };

    return cmocka_run_group_tests_name("soak", tests, prepare,
                                       digits_tear_down);
}
