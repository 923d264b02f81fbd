/* own_place.h - the place of this rank on its host, and the places of all. */
#ifndef BM_CLI_PLACEMENT_OWN_PLACE_H
#define BM_CLI_PLACEMENT_OWN_PLACE_H

#include "cli/placement/placement.h"
#include "comm/comm.h"

/*
 * *out <- the place of this rank; comm NULL: of a process alone. With `bind`
 * the process goes there, unless an external launcher, mpirun or srun, has
 * bound it already: then that is its place. Call it before there are threads
 * that compute. `gpus`: they may compute.
 *
 * Where hwloc fails the rank stays unbound, on one core, with a warning.
 */
void bm_own_place_take(bm_placement *out, const bm_comm *comm, bool gpus,
                       bool bind);

/*
 * Collective. *out <- on rank 0 a text for the journal with the places of all
 * ranks: "0 n1 0-3 0 -; 1 n1 4-7 1 -", rank, host, CPUs (all: not bound), NUMA
 * node and GPU; on others NULL. free() it. Fails with BM_ERR_COMM or
 * BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_own_place_gather(char **out, const bm_placement *own,
                                         bm_comm *comm);

#endif
