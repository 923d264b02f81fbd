/*
 * comm_thread.h - a thread beside the computing one, which does collective work
 * in the order in which it was put there, while the other computes.
 *
 *     BM_TRY(bm_comm_thread_open(&lane, comm));
 *     ... open what the work needs on bm_comm_thread_comm(lane) ...
 *     ticket = bm_comm_thread_put(lane, work, self);
 *     ... compute ...
 *     BM_TRY(bm_comm_thread_wait(lane, ticket));
 *
 * Every rank puts the same work in the same order, a rank that has failed
 * likewise: it takes part without data, as nobody else knows yet. All that is
 * put is done, whatever failed before it, for the same reason.
 */
#ifndef BM_COMM_COMM_THREAD_H
#define BM_COMM_COMM_THREAD_H

#include "comm/comm.h"

typedef struct bm_comm_thread bm_comm_thread;

/* What work->self points to is the lane's until a wait for it returns. Called
 * on the lane's thread. */
typedef bm_status bm_comm_thread_work(void *self);

/* Collective. The comm is borrowed. Fails as bm_comm_twin does. */
BM_CHECKED bm_status bm_comm_thread_open(bm_comm_thread **out, bm_comm *comm);

/* Collective. Does first what was put. */
void bm_comm_thread_close(bm_comm_thread *lane);

/* The lane's own communicator: its work's, and the caller's while nothing is
 * put that was not waited for. */
bm_comm *bm_comm_thread_comm(const bm_comm_thread *lane);

/* Puts work behind what is there; waits while there is too much. Returns its
 * number, from 1 on: all up to it are done before the next one. */
enum { BM_COMM_THREAD_ROOM = 64 }; /* that can be there at a time */
int64_t bm_comm_thread_put(bm_comm_thread *lane, bm_comm_thread_work *work,
                           void *self);

/*
 * Waits for work up to this number. The status is that of the first work that
 * failed and was not told of, with what it said.
 */
BM_CHECKED bm_status bm_comm_thread_wait(bm_comm_thread *lane, int64_t ticket);

/* Likewise for all that was put. */
BM_CHECKED bm_status bm_comm_thread_wait_all(bm_comm_thread *lane);

#endif
