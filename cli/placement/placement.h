/*
 * placement.h - which cores, which NUMA node and which GPU each rank of a host
 * gets. Ranks divide the cores of the host among them, near their GPUs; threads
 * of a rank stay on its cores. Nothing of it changes a result.
 */
#ifndef BM_CLI_PLACEMENT_PLACEMENT_H
#define BM_CLI_PLACEMENT_PLACEMENT_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

enum { BM_MOST_GPUS = 64, BM_CPU_LIST = 1024 };

typedef struct bm_placement {
    char cpus[BM_CPU_LIST]; /* "0-3,8"; of the kernel's numbers */
    long cores;             /* cores for its threads, at least 1 */
    int numa;               /* node; -1: several, or unknown */
    int gpu;                /* of those that this process sees; -1: none */
    bool bound;             /* to fewer cores than this process may use */
} bm_placement;

/* CPUs near each GPU, in the order of the GPUs; "": unknown. */
typedef struct bm_gpu_sites {
    size_t n;
    char cpus[BM_MOST_GPUS][BM_CPU_LIST];
} bm_gpu_sites;

/* An environment variable, "1/4": this job is one of four with as many ranks each
 * on every host, and takes the second share of its GPUs and cores. */
#define BM_PLACE_SHARE "BMUF_SHARE"

/* Asks CUDA's driver and the kernel; n = 0: no GPU. */
void bm_gpu_sites_find(bm_gpu_sites *out);

/* The host, as far as this process may use it. */
typedef struct bm_topology bm_topology;

/* Fails with BM_ERR_MEMORY or BM_ERR_UNSUPPORTED if hwloc does not know the
 * host. */
BM_CHECKED bm_status bm_topology_open(bm_topology **out);
void bm_topology_close(bm_topology *t);

/* Cores, not hardware threads; at least 1. */
long bm_topology_cores(const bm_topology *t);

/* Whether a launcher has already bound this process to some of its CPUs. */
bool bm_topology_is_bound(const bm_topology *t);

/*
 * out <- the place of rank `index` of `ranks` ranks on this host. Each rank gets
 * neighbouring cores, within a NUMA node where ranks and nodes allow it; with
 * GPUs, rank r uses GPU r modulo their number, and cores near it. With more ranks
 * than cores, or one rank for all, none is bound.
 */
void bm_placement_find(bm_placement *out, const bm_topology *t,
                       const bm_gpu_sites *gpus, long ranks, long index);

/* Binds all threads of this process, and those it will start. Without permission
 * it stays where it is. */
void bm_placement_bind(const bm_topology *t, const bm_placement *place);

#endif
