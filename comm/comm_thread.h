/*
 * comm_thread.h - a thread that runs collective work in the order in which it
 * was put, while the calling thread computes.
 *
 *     BM_TRY(bm_comm_thread_open(&t, comm));
 *     ... open what the work needs on bm_comm_thread_comm(t) ...
 *     ticket = bm_comm_thread_put(t, work, self);
 *     ... compute ...
 *     BM_TRY(bm_comm_thread_wait(t, ticket));
 *
 * Every rank must put the same work in the same order. A rank that has failed
 * must go on doing so, without data, because the others do not know yet. For
 * the same reason all work that is put is run, even after a failure.
 */
#ifndef BM_COMM_COMM_THREAD_H
#define BM_COMM_COMM_THREAD_H

#include "comm/comm.h"

typedef struct bm_comm_thread bm_comm_thread;

/* Called on the comm thread, which owns what `self` points to until a wait for
 * the work returns. */
typedef bm_status bm_comm_thread_work(void *self);

/* Collective. Starts a thread. The comm is borrowed. Fails as bm_comm_twin, or
 * with BM_ERR_MEMORY if the thread cannot be started. */
BM_CHECKED bm_status bm_comm_thread_open(bm_comm_thread **out, bm_comm *comm);

/* Collective. Runs the work that was put, then ends the thread. NULL: no-op. */
void bm_comm_thread_close(bm_comm_thread *t);

/* The thread's own communicator, owned by t. The caller may use it only while
 * there is no work that it has not waited for. */
bm_comm *bm_comm_thread_comm(const bm_comm_thread *t);

/* Appends work to the queue; waits while the queue is full. Returns the ticket
 * of the work, from 1 on. */
enum { BM_COMM_THREAD_ROOM = 64 }; /* length of the queue */
int64_t bm_comm_thread_put(bm_comm_thread *t, bm_comm_thread_work *work,
                           void *self);

/* Whether the work of this ticket, and all before it, has ended. */
bool bm_comm_thread_done(bm_comm_thread *t, int64_t ticket);

/* Waits for all work up to this ticket. Fails with the status and message of
 * the first work that failed and was not yet reported. */
BM_CHECKED bm_status bm_comm_thread_wait(bm_comm_thread *t, int64_t ticket);

/* The same for all work that was put. */
BM_CHECKED bm_status bm_comm_thread_wait_all(bm_comm_thread *t);

#endif
