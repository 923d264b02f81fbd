/* network.h - the network of a forecast: one of a table, or a file: [link] and
 * [inside] of a configuration, or what bmuf doctor --json has measured. */
#ifndef BM_CLI_REPORT_SCALE_NETWORK_H
#define BM_CLI_REPORT_SCALE_NETWORK_H

#include "cli/report/scale/fabric.h"
#include "core/status.h"

typedef struct bm_network {
    bm_fabric fabric;
    long cores; /* of all workers; 0: each has its own */
} bm_network;

/* `name`: "10gbe", .., or a file. Fails with BM_ERR_ARG if it is neither, and
 * with BM_ERR_CONFIG or BM_ERR_FORMAT if the file is invalid. */
BM_CHECKED bm_status bm_network_read(const char *name, bm_network *out);

/* Makes `workers` share a host, with the link of the network `name` between
 * them. Fails likewise. */
BM_CHECKED bm_status bm_network_inside(bm_network *n, const char *name,
                                       int workers);

#endif
