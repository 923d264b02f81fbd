/*
 * comm_thread.c - a ring of work between two threads, with two counters:
 *
 *     done <= put <= done + BM_COMM_THREAD_ROOM
 *
 * The comm thread owns work number done + 1 to put, and runs it in turn.
 */
#include "comm/comm_thread.h"

#include "comm/agreed_alloc.h"
#include "core/trace/span.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONGEST_ERROR = 4096 };

typedef struct job {
    bm_comm_thread_work *work;
    void *self;
} job;

struct bm_comm_thread {
    bm_comm *comm; /* the twin */
    pthread_t thread;
    bool running;

    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed; /* a counter, or stop */
    job ring[BM_COMM_THREAD_ROOM];
    int64_t put, done;
    bool stop;
    bm_status failed; /* the first failure not yet reported */
    char error[LONGEST_ERROR];
};

/* ---- the thread ---------------------------------------------------------- */

/* Waits for the next work. False: the queue is empty and closed. */
static bool next(bm_comm_thread *t, job *out)
{
    bool found = false;

    pthread_mutex_lock(&t->lock);
    while (!t->stop && t->done == t->put)
        pthread_cond_wait(&t->changed, &t->lock);
    found = t->done < t->put;
    if (found)
        *out = t->ring[t->done % BM_COMM_THREAD_ROOM];
    pthread_mutex_unlock(&t->lock);
    return found;
}

static void hand_back(bm_comm_thread *t, bm_status status)
{
    pthread_mutex_lock(&t->lock);
    if (status != BM_OK && t->failed == BM_OK) {
        t->failed = status;
        snprintf(t->error, sizeof t->error, "%s", bm_last_message());
    }
    t->done++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static void *run(void *self)
{
    bm_comm_thread *t = self;
    job j = {0};

    bm_span_thread("communication");
    while (next(t, &j))
        hand_back(t, j.work(j.self));
    return NULL;
}

/* ---- the caller's side --------------------------------------------------- */

static bm_status start(bm_comm_thread *t)
{
    if (pthread_create(&t->thread, NULL, run, t) != 0)
        return BM_FAIL(BM_ERR_MEMORY, "cannot start the communication thread");
    t->running = true;
    return BM_OK;
}

bm_status bm_comm_thread_open(bm_comm_thread **out, bm_comm *comm)
{
    void *memory = NULL;
    bm_comm_thread *t = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_agreed_alloc(comm, sizeof *t, &memory));
    t = memory;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    BM_TRY_DONE(bm_comm_twin(&t->comm, comm));
    BM_TRY_DONE(bm_comm_agree(comm, start(t)));
    *out = t;
    t = NULL;
done:
    bm_comm_thread_close(t);
    return status;
}

void bm_comm_thread_close(bm_comm_thread *t)
{
    if (t == NULL)
        return;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    if (t->running)
        pthread_join(t->thread, NULL);
    bm_comm_close(t->comm);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

bm_comm *bm_comm_thread_comm(const bm_comm_thread *t)
{
    return t->comm;
}

int64_t bm_comm_thread_put(bm_comm_thread *t, bm_comm_thread_work *work,
                           void *self)
{
    int64_t ticket = 0;

    pthread_mutex_lock(&t->lock);
    while (t->put - t->done == BM_COMM_THREAD_ROOM)
        pthread_cond_wait(&t->changed, &t->lock);
    t->ring[t->put % BM_COMM_THREAD_ROOM] = (job){work, self};
    ticket = ++t->put;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return ticket;
}

bool bm_comm_thread_done(bm_comm_thread *t, int64_t ticket)
{
    bool done = false;

    pthread_mutex_lock(&t->lock);
    done = t->done >= ticket;
    pthread_mutex_unlock(&t->lock);
    return done;
}

bm_status bm_comm_thread_wait(bm_comm_thread *t, int64_t ticket)
{
    bm_status status = BM_OK;

    pthread_mutex_lock(&t->lock);
    BM_ASSERT(ticket <= t->put);
    while (t->done < ticket)
        pthread_cond_wait(&t->changed, &t->lock);
    if (t->failed != BM_OK)
        status = BM_FAIL(t->failed, "%s", t->error);
    t->failed = BM_OK;
    pthread_mutex_unlock(&t->lock);
    return status;
}

bm_status bm_comm_thread_wait_all(bm_comm_thread *t)
{
    int64_t all = 0;

    pthread_mutex_lock(&t->lock);
    all = t->put;
    pthread_mutex_unlock(&t->lock);
    return bm_comm_thread_wait(t, all);
}
