/*
 * fabric.h - a network with two levels, inside and between hosts, and the time
 * that each sum of a vector over the workers takes on it (cost.h).
 *
 * Workers k p .. k p + p - 1 are on host k. All workers of a host share its link
 * to the other hosts; inside it, each has a link of its own. With p = 1 there
 * is one level.
 *
 * To add a sum, add a row in fabric.c.
 */
#ifndef BM_CLI_REPORT_SCALE_FABRIC_H
#define BM_CLI_REPORT_SCALE_FABRIC_H

#include "bmuf/exchange/cost.h"
#include "comm/grid.h"
#include "core/status.h"

typedef struct bm_fabric {
    bm_link between; /* of a host, for all its workers together */
    bm_link inside;  /* of a worker, to others of its host */
    int host;        /* p >= 1: workers of a host */
    int dimensions;  /* of the topology; 0: workers of a host x hosts */
    int size[BM_GRID_DIMENSIONS];
} bm_fabric;

/* One level: each worker has a host of its own. */
bm_fabric bm_fabric_flat(bm_link link);

/* Sets the topology, "4x8x8". Fails with BM_ERR_ARG. */
BM_CHECKED bm_status bm_fabric_topology(bm_fabric *f, const char *text);

/* The grid of n workers: the sizes of the topology, the last of which takes the
 * rest. One ring, if a size does not divide what is left of n. */
bm_grid bm_fabric_grid(const bm_fabric *f, int n);

typedef struct bm_sum_cost {
    const char *name, *help;
    /* Seconds until all of n workers have the sum of a vector of theirs. */
    double (*seconds)(double bytes, int n, const bm_fabric *f);
} bm_sum_cost;

/* The words of [job] sum; the last row has name NULL. */
extern const bm_sum_cost bm_sum_costs[];

/* NULL: no such sum. */
const bm_sum_cost *bm_sum_cost_find(const char *name);

/* Every worker is the parameter server of a slice: pushes to it, pulls back. */
double bm_fabric_servers(double bytes, int n, const bm_fabric *f);

/* Worker 0 receives the vectors of all others, one after the other. */
double bm_fabric_server(double bytes, int n, const bm_fabric *f);

#endif
