/*
 * slurm.h - reads the environment of Slurm: the hosts of an allocation and the
 * tasks on each.
 */
#ifndef BM_CLI_HOSTS_SLURM_H
#define BM_CLI_HOSTS_SLURM_H

#include "cli/hosts/hosts.h"

/* Is this process in a job of Slurm? */
bool bm_slurm_job(void);

/* Is this process in an allocation, but not a task that srun started: in a batch
 * script or in the shell of salloc? */
bool bm_slurm_allocation(void);

/* Is it a task that srun started? */
bool bm_slurm_task(void);

/* The tasks of the step that this task is one of; 1 if unknown. */
long bm_slurm_step_tasks(void);

/*
 * Adds the hosts of the allocation: SLURM_JOB_NODELIST with the slots of
 * SLURM_TASKS_PER_NODE, and as max_slots SLURM_JOB_CPUS_PER_NODE. *ranks <-
 * SLURM_NTASKS, or the sum of the slots.
 *
 * Fails with BM_ERR_CONFIG, and the variable, if one is missing or invalid.
 */
BM_CHECKED bm_status bm_slurm_hosts(bm_hosts *h, long *ranks);

/*
 * Adds the hosts of a list as "n[001-003,7],gpu-[1-2]", each with no slots.
 * Fails with BM_ERR_CONFIG if it cannot be read or has more than BM_MOST_HOSTS.
 */
BM_CHECKED bm_status bm_slurm_nodes(bm_hosts *h, const char *text);

/*
 * Gives slots to h [n], in order, by a text as "4(x2),3", and as max_slots the
 * numbers of CPUs in a text like it; NULL: slots. Fails with BM_ERR_CONFIG if the
 * first cannot be read or has more or fewer than n numbers.
 */
BM_CHECKED bm_status bm_slurm_counts(bm_hosts *h, const char *tasks,
                                     const char *cpus);

#endif
