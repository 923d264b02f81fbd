#define _XOPEN_SOURCE 700 /* sigaltstack */
#include "cli/launch/processes.h"

#include "cli/hosts/slurm.h"
#include "cli/launch/launcher.h"
#include "cli/launch/stop_signal.h"
#include "cli/launch/watch/heartbeat.h"
#include "cli/launch/watch/stack.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "core/file/fence.h"
#include "core/log.h"

#include <errno.h>
#include <math.h>
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
static volatile sig_atomic_t supervised;
static bm_stop_signal stop;

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

/* A second signal from the user exits at once; under a supervisor that decides.
 * SIGUSR1, which it repeats, never does. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (number != SIGUSR1 && !supervised &&
        bm_stop_signal_note(&stop, number, info)) {
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
    answers = bm_terminal_stderr() && bm_log_shows(BM_NOTE) &&
              (rank == NULL || strcmp(rank, "0") == 0);
    supervised = bm_heartbeat_is_read();
    bm_stop_signal_catch(on_signal, SA_ONSTACK);
}

/* This rank according to its launcher; NULL: no launcher. Call it before
 * MPI_Init, which changes the environment. */
static const char *rank_in_environment(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    if (rank == NULL)
        rank = getenv("PMIX_RANK");
    return rank != NULL || !bm_slurm_task() ? rank : getenv("SLURM_PROCID");
}

static struct {
    pid_t pid;
    char rank[16]; /* of this process */
} launcher;

/* Exits if a later attempt at the run has begun, which this rank missed. */
static void check_fence(void)
{
    if (bm_fence_check() == BM_OK)
        return;
    bm_log(BM_ERROR, "rank %s: %s", launcher.rank, bm_last_message());
    bm_progress_erase();
    _exit(bm_status_exit(BM_ERR_COMM));
}

/* Writes heartbeats. Exits when the launcher has died, as nothing else would end
 * this rank. */
static void *watch_launcher(void *unused)
{
    enum { FENCE_EVERY = 8 };
    struct timespec pause = {0, (long)(1e9 * BM_HEARTBEAT_S)};

    for (long i = 0; getppid() == launcher.pid; i++) {
        bm_heartbeat_beat();
        if (i % FENCE_EVERY == 0)
            check_fence();
        nanosleep(&pause, NULL);
    }
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

static volatile sig_atomic_t timeout_code; /* exit code */
static char timeout_text[120];

/* Open MPI waits without limit for a rank that died before MPI_Init. */
static void on_timeout(int number)
{
    ssize_t written = write(STDERR_FILENO, timeout_text, strlen(timeout_text));

    (void)number;
    (void)written;
    _exit(timeout_code);
}

static bm_status init_mpi(bool launched, double start_s)
{
    bm_status status = BM_OK;

    timeout_code = bm_status_exit(BM_ERR_COMM);
    snprintf(timeout_text, sizeof timeout_text,
             "bmuf: MPI_Init: the other ranks did not start within %.0f s "
             "(job.start_limit); exiting\n",
             start_s);
    if (launched) {
        signal(SIGALRM, on_timeout);
        alarm((unsigned)ceil(start_s));
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
    if (job.launcher != BM_LAUNCHER_NONE)
        return BM_OK;
    BM_TRY(bm_allocation_read(&job.allocation, a, folder));
    *ranks = job.allocation.ranks;
    if (bm_slurm_task()) { /* a single one, which has read no allocation */
        unsetenv("SLURM_STEP_ID"); /* else MPI_Init looks for other tasks */
        unsetenv("SLURM_STEPID");
    }
    return BM_OK;
}

bool bm_job_is_alone(void)
{
    return job.launcher == BM_LAUNCHER_NONE &&
           !bm_allocation_is_parallel(&job.allocation);
}

void bm_job_one_a_host(void)
{
    bm_hosts *h = &job.allocation.hosts;

    for (size_t i = 0; i < h->n; i++)
        h->list[i].slots = 1;
    if (h->n > 0)
        job.allocation.ranks = (long)h->n;
}

const bm_allocation *bm_job_allocation(void)
{
    return &job.allocation;
}

const bm_job_plan bm_job_defaults = {
    .launch = {.limits = {.start_s = 60, .hang_s = 60, .hang_factor = 10}}};

bm_status bm_job_start(const bm_arguments *a, const bm_job_plan *plan,
                       bm_comm **comm)
{
    static char stack[1 << 16]; /* of signal handlers */
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    const char *rank = rank_in_environment(); /* which MPI_Init changes */
    bool launched = false;
    long ranks = 0;

    if (!job.planned)
        BM_TRY(bm_job_ranks(a, ".", &ranks));
    launched = job.launcher != BM_LAUNCHER_NONE;
    if (!launched && bm_allocation_is_parallel(&job.allocation)) {
        job.supervised = true;
        *comm = NULL;
        return bm_launch(a, &job.allocation, &plan->launch, &job.code);
    }
    sigaltstack(&own, NULL);
    if (plan->stoppable)
        catch_signals(rank);
    if (launched) {
        bm_stack_on_signal(rank != NULL ? rank : "?");
        BM_TRY(watch());
    } else { /* no daemon of Open MPI, and no folder: all single processes would
              * have the same, and the first that ends removes it */
        setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
        setenv("OMPI_MCA_orte_create_session_dirs", "0", 0);
    }
    BM_TRY(init_mpi(launched, plan->launch.limits.start_s));
    bm_heartbeat_phase("setup");
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

/* Before MPI_Init, where ranks know nothing of each other. A command line is that
 * of all. Of other failures most are, too: when rank 0 fails, mpirun ends the
 * others, which give it the time to. */
static void report_alone(bm_status status)
{
    const char *rank = rank_in_environment();
    const struct timespec pause = {5, 0};
    char host[256] = "";

    if (rank == NULL || strcmp(rank, "0") == 0) {
        report(0, 1);
        return;
    }
    if (status == BM_ERR_ARG)
        return;
    nanosleep(&pause, NULL);
    (void)gethostname(host, sizeof host - 1);
    bm_log(BM_ERROR, "rank %s on host %s: %s", rank, host, bm_last_message());
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
    if (status != BM_OK && status != BM_STOPPED && job.comm == NULL)
        report_alone(status);
    else if (status != BM_OK && status != BM_STOPPED &&
             (agreed < 0 || agreed == rank))
        report(rank, size);
    fflush(stdout);
    if (status != BM_OK && status != BM_STOPPED && agreed < 0 && size > 1)
        bm_comm_abort(job.comm, code); /* the other ranks do not know of it */
    bm_comm_close(job.comm);
    bm_heartbeat_end();
    bm_allocation_free(&job.allocation);
    return code;
}
