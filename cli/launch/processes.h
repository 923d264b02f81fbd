/*
 * processes.h - the processes of one run of a verb: how they start, stop and
 * fail together.
 *
 * A verb that computes calls bm_job_start. Given -n RANKS, and not yet under
 * mpirun, it becomes the supervisor: it starts mpirun with the same command,
 * passes signals on, and ends with its exit code.
 */
#ifndef BM_CLI_LAUNCH_PROCESSES_H
#define BM_CLI_LAUNCH_PROCESSES_H

#include "cli/arguments.h"
#include "comm/comm.h"

/*
 * Joins the job. `stoppable`: the verb looks at bm_job_signal now and then; of
 * others a signal ends the process. *comm is NULL in the supervisor, which has
 * nothing to do but return BM_OK. Otherwise it belongs to the job until
 * bm_job_end.
 */
BM_CHECKED bm_status bm_job_start(const bm_arguments *a, bool stoppable,
                                  bm_comm **comm);

/* Tells a failure once, by the rank that knows, and leaves together with all
 * other ranks. What main returns. */
int bm_job_end(bm_status result);

/* Signals that ask for an end: after the first one this is its number; a second
 * one ends the process at once. */
int bm_job_signal(void);

#endif
