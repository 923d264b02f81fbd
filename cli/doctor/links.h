/* links.h - what was measured between ranks: slow links, the table, and the
 * network of a forecast. */
#ifndef BM_CLI_DOCTOR_LINKS_H
#define BM_CLI_DOCTOR_LINKS_H

#include "cli/doctor/check.h"

#include <stdio.h>

/* The partner of a rank in round k of size - 1 (an odd size: size) rounds, in
 * which each rank meets every other once; -1: none. */
int bm_links_partner(int size, int rank, int round);

/* Finds links that are much slower than the others of their kind, inside hosts
 * or between them. ranks: {"host", "facts": {"links": [..]}} of all ranks. */
void bm_links_compare(bm_check_context *e, const json_t *ranks);

/* Prints latency and bandwidth of each pair, for up to 12 ranks; the slowest
 * pairs of more. */
void bm_links_print(const json_t *ranks, FILE *out);

/* A new object for bmuf scale --network: medians {"link": .., "inside": ..};
 * NULL: nothing was measured. */
json_t *bm_links_network(const json_t *ranks);

#endif
