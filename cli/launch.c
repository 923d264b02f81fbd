/*
 * launch.c - one mpirun, in a session of its own so that a Ctrl-C reaches only
 * the supervisor: mpirun would leave its ranks two seconds, a block may take
 * longer. SIGUSR1 is what mpirun passes on at once.
 */
#define _GNU_SOURCE /* nftw */
#include "cli/launch.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t launcher, signals, last_signal;

static void pass_on(int number)
{
    signals++;
    last_signal = number;
    if (launcher > 0)
        kill(signals == 1 ? launcher : -launcher,
             signals == 1 ? SIGUSR1 : SIGKILL);
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    struct sigaction action = {0};

    action.sa_handler = pass_on;
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

/* Ranks write into a pipe: they are told that it ends at a terminal. */
static void tell_terminal(void)
{
    struct winsize size;
    char columns[16];

    if (!isatty(STDERR_FILENO))
        return;
    setenv("BMUF_TERMINAL", "1", 1);
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        snprintf(columns, sizeof columns, "%d", size.ws_col);
        setenv("COLUMNS", columns, 1);
    }
}

/* In the child: does not return. */
static void become_launcher(char **words, pid_t parent)
{
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(bm_status_exit(BM_ERR_COMM));
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    tell_terminal();
    execvp(words[0], words);
    fprintf(stderr, "bmuf: %s: %s; install Open MPI, or leave out -n\n",
            words[0], strerror(errno));
    _exit(bm_status_exit(BM_ERR_MISSING));
}

static int wait_for(pid_t child)
{
    int state = 0;

    while (waitpid(child, &state, 0) < 0 && errno == EINTR)
        ;
    if (signals > 1)
        return 128 + last_signal;
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

bm_status bm_launch(const bm_arguments *a, long ranks, int *code)
{
    enum { OURS = 24 };
    char program[4096] = "", scratch[1024] = "", count[24];
    char **words = calloc((size_t)a->argc + OURS, sizeof *words);
    pid_t parent = getpid(), child = 0;
    int n = 0;

    if (words == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a command line");
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        snprintf(program, sizeof program, "%s", a->argv[0]);
    snprintf(count, sizeof count, "%ld", ranks);
    if (make_scratch(scratch, sizeof scratch) != BM_OK) {
        free(words);
        return BM_ERR_CREATE;
    }
    {
        char *ours[] = {"mpirun",
                        "-quiet",
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
                        "orte_tmpdir_base",
                        scratch,
                        "--mca",
                        "btl_vader_backing_directory",
                        scratch,
                        program};
        for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
            words[n++] = ours[i];
    }
    for (int i = 1; i < a->argc; i++)
        words[n++] = a->argv[i];
    print_line(words);
    fflush(NULL);
    catch_signals();
    child = fork();
    if (child == 0)
        become_launcher(words, parent);
    free(words);
    if (child < 0)
        return BM_FAIL(BM_ERR_MEMORY, "mpirun cannot be started: %s",
                       strerror(errno));
    launcher = child;
    if (signals > 0)
        kill(child, SIGUSR1);
    *code = wait_for(child);
    nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return BM_OK;
}
