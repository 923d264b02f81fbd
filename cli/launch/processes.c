#define _XOPEN_SOURCE 700 /* sigaltstack */
#include "cli/launch/processes.h"

#include "cli/launch/launch.h"
#include "cli/launch/rank_liveness.h"
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
    int code;        /* what mpirun ended with */
} job;

static volatile sig_atomic_t asked;

/* The supervisor asks until it is answered; people ask twice to be obeyed at
 * once. */
static void on_signal(int number)
{
    if (asked != 0 && number != SIGUSR1)
        _exit(128 + number);
    asked = number;
}

int bm_job_signal(void)
{
    return asked;
}

/* SIGUSR1 is what mpirun passes on at once. Handlers have a stack of their own:
 * oneDNN 2.6 keeps numbers below the pointer of the one it is on. */
static void catch_signals(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    static char room[1 << 16];
    const stack_t own = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {0};

    sigaltstack(&own, NULL);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &action, NULL);
}

/* What the launcher calls this rank; NULL: nothing. MPI_Init changes the
 * environment. */
static const char *given_rank(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    return rank != NULL ? rank : getenv("PMIX_RANK");
}

static struct {
    pid_t pid;
    char rank[16]; /* that it has given to this process */
} launcher;

/* A rank whose launcher is gone has nobody else to end it. */
static void *watch_launcher(void *unused)
{
    struct timespec pause = {0, 250000000};

    while (getppid() == launcher.pid)
        nanosleep(&pause, NULL);
    fprintf(stderr, "rank %s: its launcher is gone; leaving\n", launcher.rank);
    _exit(bm_status_exit(BM_ERR_COMM));
    return unused;
}

static bm_status watch(void)
{
    const char *rank = given_rank();
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
        return BM_FAIL(BM_ERR_MEMORY, "no thread to watch the launcher: %s",
                       strerror(error));
    pthread_detach(thread);
    return BM_OK;
}

enum { MEETING_S = 60 };
static volatile sig_atomic_t lost; /* the exit code for it */

/* Open MPI waits for ever for a rank that dies while all of them meet. */
static void nobody_came(int number)
{
    static const char words[] = "bmuf: the other ranks did not come within a "
                                "minute; leaving\n";
    ssize_t told = write(STDERR_FILENO, words, sizeof words - 1);

    (void)number;
    (void)told;
    _exit(lost);
}

static bm_status meet(bool launched)
{
    bm_status status = BM_OK;

    lost = bm_status_exit(BM_ERR_COMM);
    if (launched) {
        signal(SIGALRM, nobody_came);
        alarm(MEETING_S);
    }
    status = bm_comm_open(&job.comm);
    alarm(0);
    return status;
}

static bool under_a_launcher(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") != NULL ||
           getenv("PMIX_RANK") != NULL || getenv("PMI_RANK") != NULL;
}

bm_status bm_job_start(const bm_arguments *a, bool stoppable, bm_comm **comm)
{
    bool launched = under_a_launcher(); /* MPI_Init changes the environment */
    long ranks = 0;

    BM_TRY(bm_argument_number(a, "ranks", 0, 1, 1 << 20, &ranks));
    if (ranks > 1 && !launched) {
        job.supervised = true;
        *comm = NULL;
        return bm_launch(a, ranks, &job.code);
    }
    if (stoppable)
        catch_signals();
    if (launched)
        BM_TRY(watch());
    else /* Open MPI starts a daemon for a single process, and waits for it */
        setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    BM_TRY(meet(launched));
    bm_log_setup(bm_comm_rank(job.comm));
    *comm = job.comm;
    return BM_OK;
}

/* "rank 3: words"; file and line are for us. */
static void tell(int rank, int size)
{
    fprintf(stderr, "bmuf: ");
    if (size > 1)
        fprintf(stderr, "rank %d: ", rank);
    fprintf(stderr, "%s\n", bm_last_message());
}

/* Before ranks have met, all of them find the same faults. */
static bool first_of_many(void)
{
    const char *rank = given_rank();

    return job.comm != NULL || rank == NULL || strcmp(rank, "0") == 0;
}

/* A reader that had enough, as head has, is no failure. */
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
    return BM_FAIL(BM_ERR_IO, "results cannot be written to stdout: %s",
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

    if (status != BM_OK && status != BM_STOPPED &&
        (agreed < 0 || agreed == rank) && first_of_many())
        tell(rank, size);
    fflush(stdout);
    if (status != BM_OK && status != BM_STOPPED && agreed < 0 && size > 1)
        bm_comm_abort(job.comm, code); /* the others do not know yet */
    bm_comm_close(job.comm);
    bm_rank_liveness_leave();
    return code;
}
