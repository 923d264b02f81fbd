/* dry_run.h - train --dry-run: where the ranks of a job would run. */
#ifndef BM_CLI_LAUNCH_DRY_RUN_H
#define BM_CLI_LAUNCH_DRY_RUN_H

#include "cli/hosts/allocation.h"

#include <stdio.h>

/*
 * Prints a line for each rank, with host, CPUs, NUMA node, GPU and threads, and
 * the command that would start them. Other hosts are asked for theirs; in an
 * allocation of Slurm they are taken to be as this one. threads 0: as
 * job.threads = 0 says. Fails as bm_placement_of_host.
 */
BM_CHECKED bm_status bm_dry_run_print(const bm_arguments *a,
                                      const bm_allocation *allocation,
                                      bool gpus, bool bound, long threads,
                                      FILE *out);

#endif
