/* place_text.h - places of ranks, for people and for programs. */
#ifndef BM_CLI_PLACEMENT_PLACE_TEXT_H
#define BM_CLI_PLACEMENT_PLACE_TEXT_H

#include "cli/placement/placement.h"

#include <jansson.h>
#include <stdio.h>

enum { BM_MOST_PLACES = 65536 };

/* *out <- the places of all ranks of this host; with its GPUs if they compute.
 * free() it. Fails as bm_topology_open, and with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_placement_of_host(bm_placement **out, long ranks,
                                          bool gpus);

/* Prints "3  CPUs 12-15  NUMA node 1  GPU -  4 cores", and a newline. */
void bm_placement_print(const bm_placement *place, long rank, FILE *out);

/* {"cpus": "12-15", "cores": 4, "numa": 1, "gpu": null, "bound": true}; an
 * object that is not this leaves *out as it was. */
json_t *bm_placement_json(const bm_placement *place);
void bm_placement_read(bm_placement *out, const json_t *o);

#endif
