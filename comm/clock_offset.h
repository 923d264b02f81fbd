/*
 * clock_offset.h - how far the clocks of ranks are apart, as NTP estimates it.
 *
 * A rank asks at s, rank 0 answers with its clock a, the answer comes at r, by
 * the rank's clock. The answer was given at some time in [s, r], so that
 *
 *     offset = a - (s + r) / 2,    wrong by at most (r - s) / 2
 *
 * Of several echoes the one with the smallest r - s counts.
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

/* Of n echoes, at least one. */
bm_offset bm_offset_of(const bm_echo *echoes, size_t n);

/* Collective, with nothing queued. Takes 8 round trips for each rank but 0, one
 * rank after the other; rank 0's own is {0, 0}. `clock` tells seconds. */
BM_CHECKED bm_status bm_clock_offset(bm_comm *comm, double (*clock)(void),
                                     bm_offset *out);

#endif
