/* launch.h - the supervisor: runs the same command under mpirun, watches it, and
 * restarts a run. */
#ifndef BM_CLI_LAUNCH_LAUNCH_H
#define BM_CLI_LAUNCH_LAUNCH_H

#include "cli/hosts/allocation.h"
#include "cli/launch/watch/watchdog.h"

/* What the supervisor needs to know of the job. */
typedef struct bm_launch_plan {
    const char *run;   /* directory of a run, which is restarted; NULL: none */
    long max_restarts; /* of the run */
    const char *again; /* without a run: how to go on after a lost rank, "; .."
                          after the message; NULL: the job starts again */
    bm_watchdog_limits limits;
} bm_launch_plan;

/*
 * Runs this program again on the ranks of an allocation and waits for it; *code
 * is its exit code. The first SIGTERM, SIGINT or SIGHUP, or SIGUSR1, asks the
 * ranks to stop cleanly, the second kills them (stop_signal.h). After a lost or
 * hanging rank a run is started again from its last checkpoint (restarts.h).
 * What no rank could report is reported on stderr.
 *
 * Fails as bm_scratch_folder_open and bm_restarts_open, and with BM_ERR_MEMORY if no
 * process can be started.
 */
BM_CHECKED bm_status bm_launch(const bm_arguments *a,
                               const bm_allocation *allocation,
                               const bm_launch_plan *plan, int *code);

#endif
