/* network.h - the network of a forecast: one of a table, or [link] of a file. */
#ifndef BM_CLI_REPORT_SCALE_NETWORK_H
#define BM_CLI_REPORT_SCALE_NETWORK_H

#include "bmuf/exchange/cost.h"
#include "core/status.h"

typedef struct bm_network {
    bm_link link;
    long cores; /* of all workers; 0: each has its own */
} bm_network;

/* `name`: "10gbe", .., or a file. Fails with BM_ERR_ARG if it is neither, and
 * with BM_ERR_CONFIG if the file is invalid. */
BM_CHECKED bm_status bm_network_read(const char *name, bm_network *out);

#endif
