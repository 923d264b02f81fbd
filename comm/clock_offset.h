/*
 * clock_offset.h - the difference between the clocks of ranks, estimated as by
 * NTP. A rank sends a request at s, rank 0 answers with its clock a, and the
 * rank receives the answer at r, by its own clock:
 *
 *     offset = a - (s + r) / 2,    error at most (r - s) / 2
 *
 * Of several echoes the one with the smallest r - s is used.
 */
#ifndef BM_COMM_CLOCK_OFFSET_H
#define BM_COMM_CLOCK_OFFSET_H

#include "comm/comm.h"

typedef struct bm_echo {
    double sent, answered, received; /* s, a, r: seconds */
} bm_echo;

typedef struct bm_offset {
    double seconds;    /* rank 0's clock, less this rank's */
    double round_trip; /* seconds: r - s */
} bm_offset;

/* The best estimate from n >= 1 echoes. */
bm_offset bm_offset_of(const bm_echo *echoes, size_t n);

/* Collective; no transfer may be queued. Takes 8 round trips for each rank but
 * 0, one rank after the other. The offset of rank 0 is {0, 0}. clock() returns
 * seconds. Fails with BM_ERR_COMM. */
BM_CHECKED bm_status bm_clock_offset(bm_comm *comm, double (*clock)(void),
                                     bm_offset *out);

#endif
