/* launch.h - the supervisor: runs the same command under mpirun and watches
 * it. */
#ifndef BM_CLI_LAUNCH_LAUNCH_H
#define BM_CLI_LAUNCH_LAUNCH_H

#include "cli/hosts/allocation.h"

/*
 * Runs this program again on the ranks of an allocation and waits for it; *code is its exit
 * code. The first SIGTERM, SIGINT or SIGHUP asks the ranks to stop cleanly, the
 * second kills them. A rank killed by a signal is reported on stderr.
 *
 * Fails as bm_scratch_open, and with BM_ERR_MEMORY if no process can be started.
 */
BM_CHECKED bm_status bm_launch(const bm_arguments *a,
                               const bm_allocation *allocation, int *code);

#endif
