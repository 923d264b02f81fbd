/*
 * attempt.c - starts mpirun in a session of its own, so that Ctrl-C reaches only
 * the supervisor, and with SIGTERM and SIGINT blocked: mpirun would kill its
 * ranks after two seconds, but a block may take longer. The supervisor sends
 * SIGUSR1, which mpirun forwards at once; it repeats the signal, as the ranks
 * may not have started yet, until one of them has ended: mpirun, about to end
 * as well, no longer catches it.
 */
#define _GNU_SOURCE /* pipe2 */
#include "cli/launch/attempt.h"

#include "cli/launch/mpirun_output.h"
#include "cli/launch/stop_signal.h"
#include "cli/terminal.h"
#include "core/clock.h"
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LOST_HOST = 205, /* mpirun's exit code */
    NOTICE_S = 5,    /* for mpirun to notice that a rank has died */
    WAKE_S = 2, /* silence of a rank that is to stop, before it is continued */
    GONE_S = 3  /* for ranks to end after mpirun */
};

typedef struct session {
    const bm_attempt *a;
    bm_outcome *out;
    bm_mpirun_output output;
    bm_watchdog watchdog;
    pid_t child;   /* mpirun */
    int messages;  /* its stderr */
    int results;   /* its stdout, passed on so that a full disk is noticed */
    int unwritten; /* errno of that */
    int dead;      /* a rank that has died; -1: none */
    double since;  /* when that was noticed */
    double next;   /* look at the ranks */
    bool seen;     /* a rank has started */
    bool leaving;  /* .. and ended by itself */
    bool returned; /* hosts are back */
} session;

static bm_stop_signal stop;
static volatile sig_atomic_t asked, killed_by;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    asked = number;
    if (number != SIGUSR1 && bm_stop_signal_note(&stop, number, info))
        killed_by = number;
}

bool bm_attempt_stop_requested(void)
{
    return asked != 0;
}

/* ---- mpirun -------------------------------------------------------------- */

/* In the child: runs mpirun; does not return. */
static void exec_mpirun(const bm_attempt *a, pid_t parent, int messages,
                        int results)
{
    sigset_t kept;
    int nothing = open("/dev/null", O_RDONLY); /* the input is not for ranks */

    bm_terminal_export();
    setsid();
    sigemptyset(&kept);
    sigaddset(&kept, SIGTERM);
    sigaddset(&kept, SIGINT);
    sigprocmask(SIG_BLOCK, &kept, NULL); /* mpirun unblocks them in its ranks */
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* its ranks notice; SIGHUP can hang it */
    if (getppid() != parent || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(messages, STDERR_FILENO) < 0 || dup2(results, STDOUT_FILENO) < 0)
        _exit(bm_status_exit(BM_ERR_COMM));
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    execvp(a->words[0], a->words);
    bm_log(BM_ERROR, "cannot run %s: %s; install Open MPI, or run without -n",
           a->words[0], strerror(errno));
    _exit(bm_status_exit(BM_ERR_MISSING));
}

static void pass_results(session *s, const char *text, size_t n)
{
    if (fwrite(text, 1, n, stdout) < n || fflush(stdout) != 0)
        s->unwritten = errno;
}

/* Passes on what comes within `ms`; with `all`, everything that is in the
 * pipes. */
static void pass_output(session *s, int ms, bool all)
{
    struct pollfd pipes[] = {{s->messages, POLLIN, 0}, {s->results, POLLIN, 0}};
    char text[4096];
    bool more = true, closed = false;

    while (more && poll(pipes, 2, all ? 0 : ms) > 0) {
        more = false;
        for (int i = 0; i < 2; i++) {
            ssize_t n =
                pipes[i].revents ? read(pipes[i].fd, text, sizeof text) : -1;

            if (n > 0 && i == 0)
                bm_mpirun_output_pass(&s->output, text, (size_t)n, stderr);
            else if (n > 0 && s->unwritten == 0)
                pass_results(s, text, (size_t)n);
            more = more || (all && n > 0);
            closed = closed || n == 0;
        }
    }
    if (closed && !all)
        poll(NULL, 0, 5); /* mpirun is about to exit */
}

/* ---- ranks --------------------------------------------------------------- */

static bm_heartbeat heartbeat_of(const session *s, int rank)
{
    bm_heartbeat h;

    bm_heartbeat_read(s->a->folder, s->a->shared, rank, &h);
    return h;
}

/* What /proc says of a process on this host. */
static char state_of(const bm_heartbeat *h)
{
    char path[64], line[512] = "", state = '?';
    const char *end = NULL;
    FILE *file = NULL;

    snprintf(path, sizeof path, "/proc/%ld/stat", h->pid);
    file = h->here && h->pid > 0 ? fopen(path, "r") : NULL;
    if (file == NULL)
        return state;
    if (fgets(line, sizeof line, file) != NULL)
        end = strrchr(line, ')'); /* names may hold anything */
    fclose(file);
    if (end != NULL && end[1] == ' ')
        state = end[2];
    return state;
}

/* A signal to a rank on this host that lives. */
static void signal_rank(const bm_heartbeat *h, int number)
{
    if (h->here && h->state == BM_HEARTBEAT_ALIVE && h->pid > 1)
        kill((pid_t)h->pid, number);
}

/* mpirun and all ranks on this host; also ranks that are stopped, which notice
 * nothing. Those on other hosts end when their daemon does. */
static void kill_job(session *s)
{
    kill(-s->child, SIGKILL);
    for (int r = 0; r < s->a->ranks; r++) {
        bm_heartbeat h = heartbeat_of(s, r);

        signal_rank(&h, SIGKILL);
    }
}

/* Waits for ranks on this host that still live after mpirun, then kills them:
 * the next attempt finds the machine free. */
static void clear_ranks(session *s)
{
    double until = bm_clock() + GONE_S;
    int living = 1;

    while (living > 0 && bm_clock() < until) {
        living = 0;
        for (int r = 0; r < s->a->ranks; r++) {
            bm_heartbeat h = heartbeat_of(s, r);

            living += h.here && h.state == BM_HEARTBEAT_ALIVE;
        }
        if (living > 0)
            poll(NULL, 0, 20);
    }
    if (living > 0)
        kill_job(s);
}

/* ---- the watchdog -------------------------------------------------------- */

/* " (process 4711, stopped)". */
static void describe_process(const bm_heartbeat *h, char *out, size_t room)
{
    char state = state_of(h);
    const char *text = "";

    if (state == 'T' || state == 't')
        text = ", which is stopped";
    else if (state == 'D')
        text = ", which waits for a disk or a network file system";
    out[0] = '\0';
    if (h->pid > 0)
        snprintf(out, room, " (process %ld%s)", h->pid, text);
}

static void describe(const session *s, bm_verdict v, char *out, size_t room)
{
    bm_heartbeat h = heartbeat_of(s, v.rank);
    char process[100];

    describe_process(&h, process, sizeof process);
    if (v.why == BM_WATCHDOG_ABSENT)
        snprintf(out, room,
                 "rank %d of %d has not started after %.0f s "
                 "(job.start_limit)",
                 v.rank, s->a->ranks, v.seconds);
    else if (v.why == BM_WATCHDOG_SILENT)
        snprintf(out, room,
                 "rank %d on %s%s has given no sign of life for %.0f s, in "
                 "phase %s",
                 v.rank, h.host, process, v.seconds, v.phase);
    else if (v.why == BM_WATCHDOG_STUCK)
        snprintf(out, room,
                 "rank %d on %s%s has made no progress for %.0f s, in phase "
                 "%s",
                 v.rank, h.host, process, v.seconds, v.phase);
    else
        snprintf(out, room,
                 "all ranks have waited for each other for %.0f s; the last "
                 "was rank %d on %s%s, in phase %s",
                 v.seconds, v.rank, h.host, process, v.phase);
}

/* The rank prints its stack; a stopped one goes on for that. */
static void print_stack(session *s, bm_verdict v)
{
    bm_heartbeat h = heartbeat_of(s, v.rank);
    double until = bm_clock() + 1;

    if (v.why == BM_WATCHDOG_ABSENT)
        return;
    signal_rank(&h, SIGUSR2);
    signal_rank(&h, SIGCONT);
    if (!h.here)
        kill(s->child, SIGUSR2); /* to all ranks */
    while (bm_clock() < until)
        pass_output(s, 100, false);
}

static void end_hanging(session *s, bm_verdict v)
{
    bm_heartbeat h = heartbeat_of(s, v.rank);
    bm_outcome *o = s->out;

    describe(s, v, o->why, sizeof o->why);
    o->ended = true;
    o->absent = v.why == BM_WATCHDOG_ABSENT;
    o->alive = v.why == BM_WATCHDOG_STUCK || v.why == BM_WATCHDOG_ALL_WAIT;
    o->rank = v.rank;
    o->seconds = v.seconds;
    snprintf(o->host, sizeof o->host, "%s", h.host);
    snprintf(o->phase, sizeof o->phase, "%.15s", v.phase);
    print_stack(s, v);
}

static void warn(const session *s, bm_verdict v)
{
    char text[600];

    describe(s, v, text, sizeof text);
    bm_log(BM_WARNING, "%s; the job is ended after %.0f s", text, v.limit_s);
}

/* A rank that is stopped cannot stop cleanly: lets it go on. */
static void wake(const session *s, int rank, double now)
{
    const bm_watched *r = &s->watchdog.of[rank];
    char state = r->seen ? state_of(&r->last) : '?';

    if (now - r->beat < WAKE_S || (state != 'T' && state != 't'))
        return;
    bm_log(BM_WARNING,
           "rank %d on %s (process %ld) is stopped: continuing it, so that the "
           "job can end",
           rank, r->last.host, r->last.pid);
    signal_rank(&r->last, SIGCONT);
}

/* Reads all heartbeats. */
static void look(session *s)
{
    double now = bm_clock();
    int dead = -1;
    bm_verdict v;

    for (int r = 0; r < s->a->ranks; r++) {
        bm_heartbeat h = heartbeat_of(s, r);

        /* The first that died: others may die of that. */
        if (h.state == BM_HEARTBEAT_DEAD && (dead < 0 || r == s->dead))
            dead = r;
        bm_watchdog_update(&s->watchdog, r, &h, now);
        s->seen = s->seen || s->watchdog.of[r].seen;
        if (h.state == BM_HEARTBEAT_NONE && s->watchdog.of[r].seen)
            s->leaving = true;
        if (asked)
            wake(s, r, now);
    }
    if (dead != s->dead)
        s->since = now;
    s->dead = dead;
    v = bm_watchdog_look(&s->watchdog, now);
    if (dead >= 0) { /* mpirun is about to end the job, or misses it */
        s->out->ended = now - s->since > NOTICE_S;
        s->out->rank = dead;
        snprintf(s->out->why, sizeof s->out->why,
                 "rank %d died, but mpirun kept waiting for it", dead);
    } else if (v.what == BM_WATCHDOG_HANGS) {
        end_hanging(s, v);
    } else if (v.what == BM_WATCHDOG_WARN) {
        warn(s, v);
    }
}

static void look_for_hosts(session *s)
{
    if (s->returned || !bm_returns_look(s->a->returns, bm_clock()))
        return;
    s->returned = true;
    bm_log(BM_NOTE, "lost hosts are reachable again: restarting with them "
                    "after this block");
}

/* ---- the end ------------------------------------------------------------- */

/* Returns mpirun's exit code, or 128 + n after signal n. Does not wait for the
 * pipes to close: processes on other hosts may hold it open longer. */
static int wait_for(session *s)
{
    int state = 0;

    while (waitpid(s->child, &state, WNOHANG) == 0) {
        double now = bm_clock();

        if (now >= s->next && !s->out->ended) {
            s->next = now + BM_HEARTBEAT_S;
            look(s);
            look_for_hosts(s);
            if ((asked || s->returned) && !killed_by && !s->leaving)
                kill(s->child, SIGUSR1);
        }
        if (killed_by || s->out->ended)
            kill_job(s);
        pass_output(s, (int)(1000 * BM_HEARTBEAT_S), false);
    }
    bm_returns_close(s->a->returns);
    clear_ranks(s);
    pass_output(s, 0, true);
    bm_mpirun_output_end(&s->output, stderr);
    /* The progress line of rank 0. */
    if (killed_by && bm_terminal_redraws())
        fprintf(stderr, "\r%*s\r", (int)bm_terminal_width() - 1, "");
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

/* Neither a rank's exit code nor 128 + a signal. */
static bool is_of_mpirun(int code)
{
    return code > 128 + SIGRTMAX && code != LOST_HOST;
}

/* Says what no rank could report. */
static void explain_death(session *s, int code)
{
    bm_outcome *o = s->out;

    o->why[0] = '\0';
    if (code <= 128)
        return;
    if (code == LOST_HOST) {
        snprintf(o->why, sizeof o->why,
                 "mpirun has lost the connection to a host");
        return;
    }
    if (is_of_mpirun(code)) {
        o->absent = !s->seen;
        snprintf(o->why, sizeof o->why,
                 "mpirun failed with code %d; its message is above, and bmuf "
                 "doctor checks hosts",
                 code);
        return;
    }
    if (s->output.signal == 0) {
        snprintf(o->why, sizeof o->why,
                 "mpirun or a rank was killed by signal %d (%s)", code - 128,
                 strsignal(code - 128));
        return;
    }
    o->rank = (int)s->output.rank;
    snprintf(o->host, sizeof o->host, "%.63s", s->output.host);
    snprintf(o->why, sizeof o->why,
             "rank %ld on %s was killed by signal %d (%s)", s->output.rank,
             s->output.host, code - 128, strsignal(code - 128));
}

static void fill(session *s, int code)
{
    bm_outcome *o = s->out;

    o->asked = asked != 0;
    o->returned = s->returned && !asked && code == bm_status_exit(BM_STOPPED);
    o->killed_by = killed_by;
    if (!o->ended) {
        o->rank = -1;
        explain_death(s, code);
    }
    o->code =
        o->ended || is_of_mpirun(code) ? bm_status_exit(BM_ERR_COMM) : code;
    if (killed_by)
        o->code = 128 + killed_by;
    else if (o->asked && code == 128 + SIGUSR1 && s->a->resumes)
        o->code = bm_status_exit(BM_STOPPED);     /* before training began */
    else if (o->asked && code == 128 + SIGUSR1) { /* as by the user's signal */
        o->code = 128 + asked;
        o->why[0] = '\0';
    }
}

bm_status bm_attempt_run(const bm_attempt *a, bm_outcome *out)
{
    session s = {.a = a, .out = out, .dead = -1, .child = -1};
    pid_t parent = getpid();
    int messages[2] = {-1, -1}, results[2] = {-1, -1};
    bm_status status = BM_OK;

    *out = (bm_outcome){.rank = -1};
    BM_TRY(bm_watchdog_new(&s.watchdog, a->ranks, &a->limits, bm_clock()));
    fflush(NULL);
    bm_stop_signal_catch(on_signal, 0);
    if (pipe2(messages, O_CLOEXEC) == 0 && pipe2(results, O_CLOEXEC) == 0)
        s.child = fork();
    if (s.child < 0)
        status =
            BM_FAIL(BM_ERR_MEMORY, "cannot start mpirun: %s", strerror(errno));
    if (s.child == 0)
        exec_mpirun(a, parent, messages[1], results[1]);
    close(messages[1]);
    close(results[1]);
    s.messages = messages[0];
    s.results = results[0];
    if (s.child > 0)
        fill(&s, wait_for(&s));
    if (s.unwritten != 0 && s.unwritten != EPIPE) /* `| head` is no failure */
        status = BM_FAIL(BM_ERR_IO, "cannot write results to stdout: %s",
                         strerror(s.unwritten));
    close(messages[0]);
    close(results[0]);
    bm_watchdog_free(&s.watchdog);
    return status;
}
