/*
 * processes.h - starts, stops and ends all processes of a verb together.
 *
 * A verb that computes calls bm_job_start. With -n RANKS or hosts, and outside
 * mpirun and srun, the process becomes the supervisor: it runs the same command
 * under mpirun, forwards signals, and exits with mpirun's exit code.
 */
#ifndef BM_CLI_LAUNCH_PROCESSES_H
#define BM_CLI_LAUNCH_PROCESSES_H

#include "cli/hosts/allocation.h"
#include "cli/launch/launch.h"
#include "comm/comm.h"

typedef struct bm_job_plan {
    bool stoppable; /* the verb polls bm_job_signal; otherwise a signal kills
                       the process */
    bm_launch_plan launch; /* for the supervisor */
} bm_job_plan;

/* Of verbs without settings. */
extern const bm_job_plan bm_job_defaults;

/*
 * *ranks <- the ranks of the job that bm_job_start will start; 1 in a process
 * that a launcher has started. `folder`: where all ranks work. A verb may call it
 * before bm_job_start, which else does; the hosts are asked once. Fails as
 * bm_launcher_find and bm_allocation_read.
 */
BM_CHECKED bm_status bm_job_ranks(const bm_arguments *a, const char *folder,
                                  long *ranks);

/* After bm_job_ranks: neither a launcher nor this process starts ranks, so that a
 * verb which needs no MPI may leave out bm_job_start. */
bool bm_job_is_alone(void);

/* After bm_job_ranks: the job gets one rank on each of several hosts. */
void bm_job_one_a_host(void);

/* What bm_job_ranks has found; valid until bm_job_end. */
const bm_allocation *bm_job_allocation(void);

/*
 * Collective over the ranks. Initialises MPI; *comm is borrowed, valid until
 * bm_job_end. In the supervisor it returns after mpirun has ended, with *comm
 * NULL: the verb returns BM_OK.
 *
 * Fails with BM_ERR_COMM if MPI cannot be initialised, and as bm_job_ranks and
 * bm_launch. A rank whose peers do not reach MPI_Init within limits.start_s, or
 * whose launcher dies, exits with the code of BM_ERR_COMM.
 */
BM_CHECKED bm_status bm_job_start(const bm_arguments *a,
                                  const bm_job_plan *plan, bm_comm **comm);

/* Ends the job and returns the exit code for main. One rank reports a failure
 * on stderr; if the ranks have not agreed on it, the job is aborted. Fails with
 * the code of BM_ERR_IO if stdout cannot be written. */
int bm_job_end(bm_status result);

/* The signal that asked the job to stop; 0: none. A second signal kills the
 * process at once. */
int bm_job_signal(void);

#endif
