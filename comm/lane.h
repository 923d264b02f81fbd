/*
 * lane.h - a thread beside the computing one, which does collective work in the
 * order in which it was put there, while the other computes.
 *
 *     BM_TRY(bm_lane_open(&lane, comm));
 *     ... open what the work needs on bm_lane_comm(lane) ...
 *     ticket = bm_lane_put(lane, work, self);
 *     ... compute ...
 *     BM_TRY(bm_lane_wait(lane, ticket));
 *
 * Every rank puts the same work in the same order, a rank that has failed
 * likewise: it takes part without data, as nobody else knows yet. All that is
 * put is done, whatever failed before it, for the same reason.
 */
#ifndef BM_COMM_LANE_H
#define BM_COMM_LANE_H

#include "comm/comm.h"

typedef struct bm_lane bm_lane;

/* What work->self points to is the lane's until a wait for it returns. Called
 * on the lane's thread. */
typedef bm_status bm_lane_work(void *self);

/* Collective. The comm is borrowed. Fails as bm_comm_twin does. */
BM_CHECKED bm_status bm_lane_open(bm_lane **out, bm_comm *comm);

/* Collective. Does first what was put. */
void bm_lane_close(bm_lane *lane);

/* The lane's own communicator: its work's, and the caller's while nothing is
 * put that was not waited for. */
bm_comm *bm_lane_comm(const bm_lane *lane);

/* Puts work behind what is there; waits while there is too much. Returns its
 * number, from 1 on: all up to it are done before the next one. */
enum { BM_LANE_ROOM = 64 }; /* that can be there at a time */
int64_t bm_lane_put(bm_lane *lane, bm_lane_work *work, void *self);

/*
 * Waits for work up to this number. The status is that of the first work that
 * failed and was not told of, with what it said. What the work has brought to
 * others counts as the comm's (bm_comm_traffic) from then on.
 */
BM_CHECKED bm_status bm_lane_wait(bm_lane *lane, int64_t ticket);

/* Likewise for all that was put. */
BM_CHECKED bm_status bm_lane_wait_all(bm_lane *lane);

#endif
