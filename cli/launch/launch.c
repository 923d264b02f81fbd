/*
 * launch.c - starts mpirun in a session of its own, so that Ctrl-C reaches only
 * the supervisor: on SIGINT mpirun kills its ranks after two seconds, but a
 * block may take longer. The supervisor sends SIGUSR1, which mpirun forwards at
 * once; it repeats the signal, as the ranks may not have started yet. If mpirun
 * goes on after a rank has died, the supervisor kills it.
 */
#define _GNU_SOURCE /* pipe2 */
#include "cli/launch/launch.h"

#include "cli/hosts/reach.h"
#include "cli/launch/mpirun_command.h"
#include "cli/launch/mpirun_output.h"
#include "cli/launch/rank_liveness.h"
#include "cli/launch/scratch.h"
#include "cli/terminal.h"
#include "core/clock.h"
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOTICE_S = 5 }; /* for mpirun to notice that a rank has died */

typedef struct session {
    char **words; /* mpirun's command line */
    bm_scratch scratch;
    long ranks;
    bm_mpirun_output output;
    int dead;     /* a rank that has died; -1: none */
    double since; /* when that was noticed */
    bool lost;    /* mpirun did not notice within NOTICE_S */
} session;

static volatile sig_atomic_t signals, last_signal;

static void note(int number)
{
    signals++;
    last_signal = number;
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    struct sigaction action = {0};

    action.sa_handler = note;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &action, NULL);
}

/* Logs the command, and puts it into the environment of the ranks, for the
 * journal. */
static void tell_command(char *const *words)
{
    char *line = bm_mpirun_command_text(words);

    setenv(BM_LAUNCH_COMMAND, line != NULL ? line : "mpirun", 1);
    bm_log(BM_DETAIL, "starting: %s", getenv(BM_LAUNCH_COMMAND));
    free(line);
}

/* In the child: runs mpirun with stderr on `pipe`; does not return. */
static void exec_mpirun(const session *s, pid_t parent, int pipe)
{
    bm_terminal_export();
    bm_rank_liveness_export(s->scratch.path);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || dup2(pipe, STDERR_FILENO) < 0)
        _exit(bm_status_exit(BM_ERR_COMM));
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    execvp(s->words[0], s->words);
    bm_log(BM_ERROR, "cannot run %s: %s; install Open MPI, or run without -n",
           s->words[0], strerror(errno));
    _exit(bm_status_exit(BM_ERR_MISSING));
}

/* Passes on one read of mpirun's output within a quarter of a second; with
 * `all`, everything that is in the pipe. */
static void pass_output(int pipe, bm_mpirun_output *output, bool all)
{
    struct pollfd ready = {.fd = pipe, .events = POLLIN};
    char text[4096];
    ssize_t n = 1;

    while (n > 0 && poll(&ready, 1, all ? 0 : 250) > 0) {
        n = read(pipe, text, sizeof text);
        if (n > 0)
            bm_mpirun_output_pass(output, text, (size_t)n, stderr);
        if (!all)
            break;
    }
    if (n == 0 && !all)
        poll(NULL, 0, 5); /* mpirun is about to exit */
}

/* Whether mpirun has not noticed for NOTICE_S that a rank died. */
static bool missed_a_death(session *s)
{
    int dead = bm_rank_liveness_dead(s->scratch.path, s->ranks);

    if (dead != s->dead)
        s->since = bm_clock();
    s->dead = dead;
    return dead >= 0 && bm_clock() - s->since > NOTICE_S;
}

/* Returns mpirun's exit code, or 128 + n after signal n. The first signal to
 * the supervisor asks the ranks to stop, the second kills them. Does not wait
 * for the pipe to close: processes on other hosts may hold it open longer. */
static int wait_for(session *s, pid_t child, int pipe)
{
    int state = 0;

    while (waitpid(child, &state, WNOHANG) == 0) {
        s->lost = s->lost || missed_a_death(s);
        if (signals > 1 || s->lost)
            kill(-child, SIGKILL);
        else if (signals == 1)
            kill(child, SIGUSR1);
        pass_output(pipe, &s->output, false);
    }
    pass_output(pipe, &s->output, true);
    bm_mpirun_output_end(&s->output, stderr);
    /* The progress line of rank 0. */
    if (signals > 1 && bm_terminal_redraws())
        fprintf(stderr, "\r%*s\r", (int)bm_terminal_width() - 1, "");
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

/* The supervisor's exit code. Reports deaths that no rank could report. */
static int exit_code(const bm_arguments *a, const session *s, int code)
{
    const char *advice = strcmp(a->verb->name, "train") == 0
                             ? "; run the same command again to resume from "
                               "the last checkpoint"
                             : "";

    if (signals > 1)
        return 128 + last_signal;
    if (signals == 1 && code == 128 + SIGUSR1) /* before training began */
        return bm_status_exit(BM_STOPPED);
    if (code <= 128)
        return code;
    if (s->lost)
        bm_log(BM_ERROR, "rank %d died, but mpirun kept waiting for it%s",
               s->dead, advice);
    else if (s->output.signal > 0)
        bm_log(BM_ERROR, "rank %ld on %s was killed by signal %d (%s)%s",
               s->output.rank, s->output.host, code - 128,
               strsignal(code - 128), advice);
    else
        bm_log(BM_ERROR, "mpirun or a rank was killed by signal %d (%s)%s",
               code - 128, strsignal(code - 128), advice);
    return s->lost ? bm_status_exit(BM_ERR_COMM) : code;
}

static bm_status supervise(const bm_arguments *a, session *s, int *code)
{
    pid_t parent = getpid(), child = -1;
    int ends[2] = {-1, -1};
    bm_status status = BM_OK;

    tell_command(s->words);
    fflush(NULL);
    catch_signals();
    if (pipe2(ends, O_CLOEXEC) == 0)
        child = fork();
    if (child < 0)
        status =
            BM_FAIL(BM_ERR_MEMORY, "cannot start mpirun: %s", strerror(errno));
    if (child == 0)
        exec_mpirun(s, parent, ends[1]);
    close(ends[1]);
    if (child > 0)
        *code = exit_code(a, s, wait_for(s, child, ends[0]));
    close(ends[0]);
    return status;
}

bm_status bm_launch(const bm_arguments *a, const bm_allocation *allocation,
                    int *code)
{
    session s = {.ranks = allocation->ranks, .dead = -1};
    bm_status status = BM_OK;

    BM_TRY(bm_scratch_open(&s.scratch, allocation->ranks));
    status = bm_mpirun_command(&s.words, a, allocation, s.scratch.path);
    if (status == BM_OK)
        status = supervise(a, &s, code);
    bm_mpirun_command_free(s.words);
    if (allocation->by == BM_BY_HOSTS)
        bm_reach_remove(&allocation->hosts, s.scratch.path);
    bm_scratch_close(&s.scratch);
    return status;
}
