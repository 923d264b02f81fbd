/*
 * launch.c - runs the same command again under mpirun, and again after an
 * attempt that lost a rank.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/launch/launch.h"

#include "cli/doctor/limits.h"
#include "cli/hosts/reach.h"
#include "cli/launch/attempt.h"
#include "cli/launch/mpirun_command.h"
#include "cli/launch/restarts.h"
#include "cli/launch/scratch.h"
#include "core/log.h"

#include <signal.h>
#include <stdlib.h>

/* Logs the command, and puts it into the environment of the ranks, for the
 * journal. */
static void log_command(char *const *words)
{
    char *line = bm_mpirun_command_text(words);

    setenv(BM_LAUNCH_COMMAND, line != NULL ? line : "mpirun", 1);
    bm_log(BM_DETAIL, "starting: %s", getenv(BM_LAUNCH_COMMAND));
    free(line);
}

/* Reports deaths that no rank could report; returns the supervisor's exit
 * code. */
static int finish(const bm_restarts *r, const bm_outcome *o, const char *again)
{
    bool lost = o->why[0] != '\0' || o->code == 1, run = r->run[0] != '\0';
    const char *advice =
        run             ? "; run the same command again to resume from the "
                          "last checkpoint"
        : again != NULL ? again
                        : "";

    if (o->killed_by != 0)
        return o->code;
    if (o->asked && lost && run) {
        bm_log(BM_WARNING, "the job ended before it had stopped cleanly (%s)%s",
               o->why[0] != '\0' ? o->why : "mpirun failed", advice);
        return bm_status_exit(BM_STOPPED);
    }
    if (o->asked && lost && again != NULL) {
        bm_log(BM_WARNING, "stopped%s", advice);
        return bm_status_exit(BM_STOPPED);
    }
    if (o->why[0] != '\0')
        bm_log(BM_ERROR, "%s%s", o->why, o->absent ? "" : advice);
    return o->code <= 128 + SIGRTMAX ? o->code
                                     : bm_status_exit(BM_ERR_COMM); /* a host */
}

/* One attempt, in a folder of its own. */
static bm_status attempt(const bm_arguments *a, const bm_allocation *allocation,
                         const bm_launch_plan *p, const bm_restarts *r,
                         const bm_watchdog_limits *limits, bm_outcome *out)
{
    const char *resumed = bm_restarts_has_settings(r) ? p->run : NULL;
    bm_returns returns = {.lost = &allocation->lost,
                          .folder = r->run,
                          .every_s = bm_returns_every(r->returns)};
    bm_scratch_folder scratch = {.lock = -1};
    bm_attempt plan = {.ranks = (int)allocation->ranks,
                       .shared = r->shared,
                       .limits = *limits,
                       .returns = &returns,
                       .resumes = p->run != NULL || p->again != NULL};
    bm_status status = BM_OK;

    BM_TRY(bm_scratch_folder_open(&scratch, allocation->ranks));
    plan.folder = scratch.path;
    plan.limits.near = r->shared[0] == '\0';
    setenv(BM_HEARTBEAT_FOLDER, scratch.path, 1); /* for the ranks */
    setenv(BM_HEARTBEAT_SHARED, r->shared, 1);
    setenv(BM_FENCE_ATTEMPT, r->own, 1);
    status =
        bm_mpirun_command(&plan.words, a, allocation, scratch.path, resumed);
    if (status == BM_OK) {
        log_command(plan.words);
        status = bm_attempt_run(&plan, out);
    }
    bm_mpirun_command_free(plan.words);
    if (allocation->by == BM_BY_HOSTS)
        bm_reach_remove(&allocation->hosts, scratch.path);
    bm_scratch_folder_close(&scratch);
    return status;
}

/* As many as there are on the first host, for several hosts. */
static long ranks_here(const bm_allocation *allocation)
{
    return allocation->hosts.n > 0 ? allocation->hosts.list[0].slots
                                   : allocation->ranks;
}

/* The hosts of the next attempt: those that answer. */
static bm_status choose_hosts(bm_allocation *now, const bm_allocation *whole,
                              const char *run)
{
    long before = now->ranks;

    bm_allocation_free(now);
    BM_TRY(bm_allocation_again(now, whole, run));
    if (now->ranks != before)
        bm_log(BM_WARNING, "continuing with %ld ranks (before: %ld)",
               now->ranks, before);
    return BM_OK;
}

bm_status bm_launch(const bm_arguments *a, const bm_allocation *allocation,
                    const bm_launch_plan *plan, int *code)
{
    bm_watchdog_limits limits = plan->limits;
    bm_allocation fewer = {.ranks = allocation->ranks};
    const bm_allocation *now = allocation;
    bm_outcome o = {0};
    bm_restarts r;
    bool again = true;
    bm_status status = BM_OK;

    BM_TRY(bm_limits_check(ranks_here(allocation)));
    BM_TRY_DONE(bm_restarts_open(&r, plan->run, plan->max_restarts));
    while (again) {
        BM_TRY_DONE(bm_restarts_begin(&r));
        BM_TRY_DONE(attempt(a, now, plan, &r, &limits, &o));
        again = bm_restarts_another(&r, &o);
        if (o.ended && o.alive) /* perhaps it was only slow */
            limits.hang_s *= 2;
        if (again && allocation->by == BM_BY_HOSTS) {
            BM_TRY_DONE(choose_hosts(&fewer, allocation, r.run));
            now = &fewer;
        }
        if (again && bm_attempt_stop_requested()) { /* meanwhile */
            o.asked = true;
            again = false;
        }
    }
    *code = finish(&r, &o, plan->again);
done:
    bm_allocation_free(&fewer);
    bm_restarts_close(&r);
    return status;
}
