/*
 * launch.c - one mpirun, in a session of its own so that a Ctrl-C reaches only
 * the supervisor: mpirun would leave its ranks two seconds, a block may take
 * longer. SIGUSR1 is what mpirun passes on at once; it is sent again and again,
 * as the first ones may come before there are ranks. An mpirun that outlives
 * the death of a rank for long is ended.
 */
#define _GNU_SOURCE /* nftw, pipe2 */
#include "cli/launch/launch.h"

#include "cli/launch/mpirun_output.h"
#include "cli/launch/rank_liveness.h"
#include "core/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOURNING_S = 5 }; /* for mpirun to notice that a rank is gone */

typedef struct session {
    char **words;       /* of mpirun's command line; borrowed */
    char scratch[1024]; /* shared memory, sockets and signatures of the ranks */
    long ranks;
    bm_mpirun_output relay;
    int missing;  /* a rank that is gone; -1: none */
    double since; /* when that was seen */
    bool lost;    /* mpirun did not notice */
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

static int remove_one(const char *path, const struct stat *info, int kind,
                      struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

/* It lives and dies with the attempt. */
static bm_status make_scratch(char *path, size_t room)
{
    const char *base = getenv("TMPDIR");

    snprintf(path, room, "%s/bmuf-XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(path) == NULL)
        return BM_FAIL(BM_ERR_CREATE, "%s: %s", path, strerror(errno));
    return BM_OK;
}

static void print_line(char *const *words)
{
    fprintf(stderr, "starting:");
    for (; *words != NULL; words++)
        fprintf(stderr, " %s", *words);
    fputc('\n', stderr);
}

/* Ranks write into a pipe: they are told what ends at a terminal. */
static void tell_terminal(void)
{
    struct winsize size;
    char columns[16];

    if (!isatty(STDERR_FILENO))
        return;
    setenv("BMUF_TERMINAL", isatty(STDOUT_FILENO) ? "stderr stdout" : "stderr",
           1);
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        snprintf(columns, sizeof columns, "%d", size.ws_col);
        setenv("COLUMNS", columns, 1);
    }
}

/* In the child: does not return. */
static void become_launcher(const session *s, pid_t parent, int said)
{
    tell_terminal();
    bm_rank_liveness_offer(s->scratch);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || dup2(said, STDERR_FILENO) < 0)
        _exit(bm_status_exit(BM_ERR_COMM));
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    execvp(s->words[0], s->words);
    fprintf(stderr, "bmuf: %s: %s; install Open MPI, or leave out -n\n",
            s->words[0], strerror(errno));
    _exit(bm_status_exit(BM_ERR_MISSING));
}

/* Passes on what mpirun says within a quarter of a second, or all there is. */
static void hear(int said, bm_mpirun_output *relay, bool all)
{
    struct pollfd ready = {.fd = said, .events = POLLIN};
    char words[4096];
    ssize_t n = 1;

    while (n > 0 && poll(&ready, 1, all ? 0 : 250) > 0) {
        n = read(said, words, sizeof words);
        if (n > 0)
            bm_mpirun_output_pass(relay, words, (size_t)n, stderr);
        if (!all)
            break;
    }
    if (n == 0 && !all)
        poll(NULL, 0, 5); /* it is about to end */
}

/* Whether mpirun goes on without one of its ranks. */
static bool is_bereft(session *s)
{
    int missing = bm_rank_liveness_missing(s->scratch, s->ranks);

    if (missing != s->missing)
        s->since = bm_clock();
    s->missing = missing;
    return missing >= 0 && bm_clock() - s->since > MOURNING_S;
}

/* The first signal asks for an end, the second is one. Processes on other hosts
 * may hold mpirun's pipe open after it is gone. */
static int wait_for(session *s, pid_t child, int said)
{
    int state = 0;

    while (waitpid(child, &state, WNOHANG) == 0) {
        s->lost = s->lost || is_bereft(s);
        if (signals > 1 || s->lost)
            kill(-child, SIGKILL);
        else if (signals == 1)
            kill(child, SIGUSR1);
        hear(said, &s->relay, false);
    }
    hear(said, &s->relay, true);
    bm_mpirun_output_end(&s->relay, stderr);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

/* What the supervisor ends with, and what only it can tell. */
static int judge(const bm_arguments *a, const session *s, int code)
{
    bool trains = strcmp(a->verb->name, "train") == 0;

    if (signals > 1)
        return 128 + last_signal;
    if (signals == 1 && code == 128 + SIGUSR1) /* not yet at work */
        return bm_status_exit(BM_STOPPED);
    if (code <= 128)
        return code;
    fprintf(stderr, "bmuf: ");
    if (s->lost)
        fprintf(stderr, "rank %d is gone, and mpirun waited for it",
                s->missing);
    else if (s->relay.signal > 0)
        fprintf(stderr, "rank %ld on %s was ended by signal %d (%s)",
                s->relay.rank, s->relay.host, code - 128,
                strsignal(code - 128));
    else
        fprintf(stderr, "mpirun or a rank was ended by signal %d (%s)",
                code - 128, strsignal(code - 128));
    fprintf(stderr, "%s\n",
            trains ? "; the same command goes on from the last checkpoint"
                   : "");
    return s->lost ? bm_status_exit(BM_ERR_COMM) : code;
}

/* Over TCP Open MPI asks before it sends a message longer than these, and the
 * answer waits behind what the other side is sending: docs/scaling.md. They go
 * together: who sets one of them sets all. */
static char *const limits[] = {"btl_tcp_rndv_eager_limit",
                               "btl_tcp_eager_limit", "btl_tcp_max_send_size"};

enum { LIMITS = sizeof limits / sizeof limits[0] };

static bool user_limits(void)
{
    char name[64];

    for (int i = 0; i < LIMITS; i++) {
        snprintf(name, sizeof name, "OMPI_MCA_%s", limits[i]);
        if (getenv(name) != NULL)
            return true;
    }
    return false;
}

/* mpirun and what it starts; free() the list, its words are borrowed. */
static char **command(const bm_arguments *a, char *count, char *scratch)
{
    static char program[4096];
    char *ours[] = {"mpirun",
                    "-np",
                    count,
                    "--oversubscribe",
                    "--bind-to",
                    "none",
                    "--mca",
                    "mpi_yield_when_idle",
                    "1",
                    "--mca",
                    "btl_base_warn_component_unused",
                    "0",
                    "--mca",
                    "odls_base_sigkill_timeout", /* all is on disk by then */
                    "0",
                    "--mca",
                    "orte_tmpdir_base",
                    scratch,
                    "--mca",
                    "btl_vader_backing_directory",
                    scratch};
    size_t n = sizeof ours / sizeof ours[0];
    char **words = calloc(n + 3 * LIMITS + 1 + (size_t)a->argc, sizeof *words);

    if (words == NULL)
        return NULL;
    memcpy(words, ours, sizeof ours);
    for (int i = 0; i < LIMITS && !user_limits(); i++) {
        words[n++] = "--mca";
        words[n++] = limits[i];
        words[n++] = "8388608";
    }
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        snprintf(program, sizeof program, "%s", a->argv[0]);
    words[n++] = program;
    for (int i = 1; i < a->argc; i++)
        words[n++] = a->argv[i];
    return words;
}

static bm_status supervise(const bm_arguments *a, session *s, int *code)
{
    pid_t parent = getpid(), child = -1;
    int said[2] = {-1, -1};
    bm_status status = BM_OK;

    print_line(s->words);
    fflush(NULL);
    catch_signals();
    if (pipe2(said, O_CLOEXEC) == 0)
        child = fork();
    if (child < 0)
        status = BM_FAIL(BM_ERR_MEMORY, "mpirun cannot be started: %s",
                         strerror(errno));
    if (child == 0)
        become_launcher(s, parent, said[1]);
    close(said[1]);
    if (child > 0)
        *code = judge(a, s, wait_for(s, child, said[0]));
    close(said[0]);
    return status;
}

bm_status bm_launch(const bm_arguments *a, long ranks, int *code)
{
    session s = {.ranks = ranks, .missing = -1};
    char count[24];
    bm_status status = BM_OK;

    BM_TRY(make_scratch(s.scratch, sizeof s.scratch));
    snprintf(count, sizeof count, "%ld", ranks);
    s.words = command(a, count, s.scratch);
    if (s.words != NULL)
        status = supervise(a, &s, code);
    else
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for a command line");
    free((void *)s.words);
    nftw(s.scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return status;
}
