/* link_time.h - latency and bandwidth of the link between two ranks, measured
 * with messages. */
#ifndef BM_COMM_LINK_TIME_H
#define BM_COMM_LINK_TIME_H

#include "comm/comm.h"

typedef struct bm_link_time {
    double latency_s;   /* half the median round trip of one float */
    double bytes_per_s; /* in each direction, while both ranks send */
} bm_link_time;

enum { BM_LINK_FLOATS = 2000000 };

/*
 * Two ranks call it at the same time, each with the other's number; the others
 * do not. Both send `floats` numbers to each other: at most BM_LINK_FLOATS; 0:
 * as many as take about a tenth of a second. *out is the same on both. No
 * transfer may be queued. Fails with BM_ERR_COMM or BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_link_measure(bm_comm *comm, int other, size_t floats,
                                     bm_link_time *out);

#endif
