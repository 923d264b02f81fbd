/* launch.h - the supervisor: mpirun with the same command, watched. */
#ifndef BM_CLI_LAUNCH_LAUNCH_H
#define BM_CLI_LAUNCH_LAUNCH_H

#include "cli/arguments.h"

/*
 * Starts this program on so many ranks and waits for it. The first SIGTERM,
 * SIGINT or SIGHUP asks the ranks to stop cleanly, the second ends them. *code
 * is what the job ended with.
 */
BM_CHECKED bm_status bm_launch(const bm_arguments *a, long ranks, int *code);

#endif
