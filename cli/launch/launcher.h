/*
 * launcher.h - what has started this process: no launcher, the supervisor, or
 * an external launcher: mpirun not started by bmuf, or srun of Slurm.
 */
#ifndef BM_CLI_LAUNCH_LAUNCHER_H
#define BM_CLI_LAUNCH_LAUNCHER_H

#include "cli/arguments.h"

#include <stdbool.h>

typedef enum bm_launcher {
    BM_LAUNCHER_NONE, /* this process is alone */
    BM_LAUNCHER_OURS, /* mpirun, started by bm_launch */
    BM_LAUNCHER_OTHER /* external: another mpirun, or srun with PMIx */
} bm_launcher;

/*
 * Call it before MPI_Init, which changes the environment. Fails with BM_ERR_ARG,
 * and both remedies, if srun has started several ranks that cannot find each
 * other, as without PMIx; and if options ask for ranks where others have already
 * been started.
 */
BM_CHECKED bm_status bm_launcher_find(const bm_arguments *a, bm_launcher *out);

#endif
