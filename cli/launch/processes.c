#define _XOPEN_SOURCE 700 /* sigaltstack */
#include "cli/launch/processes.h"

#include "cli/launch/launch.h"
#include "cli/launch/launcher.h"
#include "cli/launch/rank_liveness.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "core/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
    bm_comm *comm;
    bool supervised; /* this process is the supervisor */
    int code;        /* mpirun's exit code */
    bool planned;    /* the next two are known */
    bm_launcher launcher;
    bm_allocation allocation; /* without a launcher */
} job;

static volatile sig_atomic_t asked;
static volatile sig_atomic_t answers; /* this process answers on a terminal */

/* A block may take minutes. */
static void answer(void)
{
    static const char text[] = "stopping after this block; a second signal "
                               "ends the run at once\n";
    int error = errno; /* of what the signal interrupted */
    ssize_t written = 0;

    bm_progress_erase();
    written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    errno = error;
}

/* A second signal from the user exits at once. The supervisor repeats SIGUSR1,
 * which does not. */
static void on_signal(int number)
{
    if (asked != 0 && number != SIGUSR1) {
        bm_progress_erase();
        _exit(128 + number);
    }
    if (asked == 0 && answers)
        answer();
    asked = number;
}

int bm_job_signal(void)
{
    return asked;
}

/* mpirun forwards SIGUSR1 at once. The handler has its own stack, as oneDNN 2.6
 * stores values below the stack pointer. */
static void catch_signals(const char *rank)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    static char memory[1 << 16];
    const stack_t own = {.ss_sp = memory, .ss_size = sizeof memory};
    struct sigaction action = {0};

    answers = bm_terminal_stderr() && bm_log_shows(BM_NOTE) &&
              (rank == NULL || strcmp(rank, "0") == 0);
    sigaltstack(&own, NULL);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &action, NULL);
}

/* This rank according to its launcher; NULL: no launcher. Call it before
 * MPI_Init, which changes the environment. */
static const char *rank_in_environment(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    return rank != NULL ? rank : getenv("PMIX_RANK");
}

static struct {
    pid_t pid;
    char rank[16]; /* of this process */
} launcher;

/* Exits when the launcher has died, as nothing else would end this rank. */
static void *watch_launcher(void *unused)
{
    struct timespec pause = {0, 250000000};

    while (getppid() == launcher.pid)
        nanosleep(&pause, NULL);
    bm_log(BM_ERROR, "rank %s: mpirun has died; exiting", launcher.rank);
    bm_progress_erase();
    _exit(bm_status_exit(BM_ERR_COMM));
    return unused;
}

static bm_status watch(void)
{
    const char *rank = rank_in_environment();
    pthread_t thread;
    sigset_t all, before;
    int error = 0;

    launcher.pid = getppid();
    snprintf(launcher.rank, sizeof launcher.rank, "%s",
             rank != NULL ? rank : "?");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, NULL, watch_launcher, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return BM_FAIL(BM_ERR_MEMORY,
                       "cannot start a thread to watch mpirun: %s",
                       strerror(error));
    pthread_detach(thread);
    return BM_OK;
}

enum { INIT_S = 60 };
static volatile sig_atomic_t timeout_code; /* exit code */

/* Open MPI waits without limit for a rank that died before MPI_Init. */
static void on_timeout(int number)
{
    static const char text[] = "bmuf: MPI_Init: the other ranks did not start "
                               "within 60 s; exiting\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);

    (void)number;
    (void)written;
    _exit(timeout_code);
}

static bm_status init_mpi(bool launched)
{
    bm_status status = BM_OK;

    timeout_code = bm_status_exit(BM_ERR_COMM);
    if (launched) {
        signal(SIGALRM, on_timeout);
        alarm(INIT_S);
    }
    status = bm_comm_open(&job.comm);
    alarm(0);
    return status;
}

bm_status bm_job_ranks(const bm_arguments *a, const char *folder, long *ranks)
{
    BM_TRY(bm_launcher_find(a, &job.launcher));
    job.planned = true;
    *ranks = 1;
    if (job.launcher == BM_LAUNCHER_NONE) {
        BM_TRY(bm_allocation_read(&job.allocation, a, folder));
        *ranks = job.allocation.ranks;
    }
    return BM_OK;
}

const bm_allocation *bm_job_allocation(void)
{
    return &job.allocation;
}

bm_status bm_job_start(const bm_arguments *a, bool stoppable, bm_comm **comm)
{
    bool launched = false;
    long ranks = 0;

    if (!job.planned)
        BM_TRY(bm_job_ranks(a, ".", &ranks));
    launched = job.launcher != BM_LAUNCHER_NONE;
    if (!launched && bm_allocation_is_parallel(&job.allocation)) {
        job.supervised = true;
        *comm = NULL;
        return bm_launch(a, &job.allocation, &job.code);
    }
    if (stoppable)
        catch_signals(rank_in_environment());
    if (launched)
        BM_TRY(watch());
    else { /* no daemon of Open MPI, and no folder: all single processes would
            * have the same, and the first that ends removes it */
        setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
        setenv("OMPI_MCA_orte_create_session_dirs", "0", 0);
    }
    BM_TRY(init_mpi(launched));
    bm_log_setup(bm_comm_rank(job.comm));
    *comm = job.comm;
    return BM_OK;
}

/* "rank 3: message", without the source file and line. */
static void report(int rank, int size)
{
    char who[32] = "";

    if (size > 1)
        snprintf(who, sizeof who, "rank %d: ", rank);
    bm_log(BM_ERROR, "%s%s", who, bm_last_message());
}

/* Before MPI_Init all ranks fail alike: rank 0 reports. */
static bool reports(void)
{
    const char *rank = rank_in_environment();

    return job.comm != NULL || rank == NULL || strcmp(rank, "0") == 0;
}

/* A closed pipe, as with `bmuf ... | head`, is no failure. */
static bool reader_is_gone(void)
{
    struct pollfd out = {STDOUT_FILENO, POLLOUT, 0};

    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

static bm_status flush_results(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return BM_OK;
    if (reader_is_gone())
        return BM_OK;
    return BM_FAIL(BM_ERR_IO, "cannot write results to stdout: %s",
                   strerror(errno));
}

int bm_job_end(bm_status result)
{
    bm_status status = result == BM_OK ? flush_results() : result;
    int code =
        job.supervised && status == BM_OK ? job.code : bm_status_exit(status);
    int rank = job.comm != NULL ? bm_comm_rank(job.comm) : 0;
    int size = job.comm != NULL ? bm_comm_size(job.comm) : 1;
    int agreed = job.comm != NULL ? bm_comm_agreed(job.comm) : -1;

    bm_progress_close();
    if (status != BM_OK && status != BM_STOPPED &&
        (agreed < 0 || agreed == rank) && reports())
        report(rank, size);
    fflush(stdout);
    if (status != BM_OK && status != BM_STOPPED && agreed < 0 && size > 1)
        bm_comm_abort(job.comm, code); /* the other ranks do not know of it */
    bm_comm_close(job.comm);
    bm_rank_liveness_end();
    bm_allocation_free(&job.allocation);
    return code;
}
