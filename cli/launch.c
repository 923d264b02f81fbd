/*
 * launch.c - one mpirun, in a session of its own so that a Ctrl-C reaches only
 * the supervisor: mpirun would leave its ranks two seconds, a block may take
 * longer. SIGUSR1 is what mpirun passes on at once; it is sent again and again,
 * as the first ones may come before there are ranks.
 */
#define _GNU_SOURCE /* nftw, pipe2 */
#include "cli/launch.h"

#include "cli/relay.h"

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

/* The session's shared memory and sockets live and die with the attempt. */
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
static void become_launcher(char **words, pid_t parent, int said)
{
    tell_terminal();
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || dup2(said, STDERR_FILENO) < 0)
        _exit(bm_status_exit(BM_ERR_COMM));
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    execvp(words[0], words);
    fprintf(stderr, "bmuf: %s: %s; install Open MPI, or leave out -n\n",
            words[0], strerror(errno));
    _exit(bm_status_exit(BM_ERR_MISSING));
}

/* Passes on what mpirun says within a quarter of a second, or all there is. */
static void hear(int said, bm_relay *relay, bool all)
{
    struct pollfd ready = {.fd = said, .events = POLLIN};
    char words[4096];
    ssize_t n = 1;

    while (n > 0 && poll(&ready, 1, all ? 0 : 250) > 0) {
        n = read(said, words, sizeof words);
        if (n > 0)
            bm_relay_pass(relay, words, (size_t)n, stderr);
        if (!all)
            break;
    }
    if (n == 0 && !all)
        poll(NULL, 0, 5); /* it is about to end */
}

/* The first signal asks for an end, the second is one. Processes on other hosts
 * may hold mpirun's pipe open after it is gone. */
static int wait_for(pid_t child, int said, bm_relay *relay)
{
    int state = 0;

    while (waitpid(child, &state, WNOHANG) == 0) {
        if (signals > 1)
            kill(-child, SIGKILL);
        else if (signals == 1)
            kill(child, SIGUSR1);
        hear(said, relay, false);
    }
    hear(said, relay, true);
    bm_relay_end(relay, stderr);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

/* What the supervisor ends with, and what only it can tell. */
static int judge(const bm_arguments *a, const bm_relay *relay, int code)
{
    bool trains = strcmp(a->verb->name, "train") == 0;

    if (signals > 1)
        return 128 + last_signal;
    if (signals == 1 && code == 128 + SIGUSR1) /* not yet at work */
        return bm_status_exit(BM_STOPPED);
    if (code <= 128)
        return code;
    fprintf(stderr, "bmuf: ");
    if (relay->signal > 0)
        fprintf(stderr, "rank %ld on %s", relay->rank, relay->host);
    else
        fprintf(stderr, "mpirun or a rank");
    fprintf(stderr, " was ended by signal %d (%s)%s\n", code - 128,
            strsignal(code - 128),
            trains ? "; the same command goes on from the last checkpoint"
                   : "");
    return code;
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
                    scratch,
                    program};
    size_t n = sizeof ours / sizeof ours[0];
    char **words = calloc(n + (size_t)a->argc, sizeof *words);

    if (words == NULL)
        return NULL;
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        snprintf(program, sizeof program, "%s", a->argv[0]);
    memcpy(words, ours, sizeof ours);
    for (int i = 1; i < a->argc; i++)
        words[n++] = a->argv[i];
    return words;
}

static bm_status supervise(const bm_arguments *a, char **words, int *code)
{
    pid_t parent = getpid(), child = -1;
    bm_relay relay = {0};
    int said[2] = {-1, -1};

    print_line(words);
    fflush(NULL);
    catch_signals();
    if (pipe2(said, O_CLOEXEC) == 0)
        child = fork();
    if (child == 0)
        become_launcher(words, parent, said[1]);
    close(said[1]);
    if (child > 0)
        *code = judge(a, &relay, wait_for(child, said[0], &relay));
    close(said[0]);
    if (child < 0)
        return BM_FAIL(BM_ERR_MEMORY, "mpirun cannot be started: %s",
                       strerror(errno));
    return BM_OK;
}

bm_status bm_launch(const bm_arguments *a, long ranks, int *code)
{
    char scratch[1024] = "", count[24], **words = NULL;
    bm_status status = BM_OK;

    BM_TRY(make_scratch(scratch, sizeof scratch));
    snprintf(count, sizeof count, "%ld", ranks);
    words = command(a, count, scratch);
    if (words != NULL)
        status = supervise(a, words, code);
    else
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for a command line");
    free((void *)words);
    nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return status;
}
