/*
 * comm_thread.c - a ring of work between two threads. Two counters tell whose a
 * place in it is:
 *
 *     done <= put <= done + BM_COMM_THREAD_ROOM
 *
 * Work (done, put] is the lane's, one after the other.
 */
#include "comm/comm_thread.h"

#include "core/span.h"

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
    bm_status failed; /* the first one that was not told of */
    char error[LONGEST_ERROR];
};

/* ---- the thread ---------------------------------------------------------- */

/* The next work, when there is some; false: stop, there is none left. */
static bool next(bm_comm_thread *l, job *out)
{
    bool found = false;

    pthread_mutex_lock(&l->lock);
    while (!l->stop && l->done == l->put)
        pthread_cond_wait(&l->changed, &l->lock);
    found = l->done < l->put;
    if (found)
        *out = l->ring[l->done % BM_COMM_THREAD_ROOM];
    pthread_mutex_unlock(&l->lock);
    return found;
}

static void hand_back(bm_comm_thread *l, bm_status status)
{
    pthread_mutex_lock(&l->lock);
    if (status != BM_OK && l->failed == BM_OK) {
        l->failed = status;
        snprintf(l->error, sizeof l->error, "%s", bm_last_message());
    }
    l->done++;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static void *run(void *self)
{
    bm_comm_thread *l = self;
    job j = {0};

    bm_span_thread("communication");
    while (next(l, &j))
        hand_back(l, j.work(j.self));
    return NULL;
}

/* ---- the caller's side --------------------------------------------------- */

static bm_status start(bm_comm_thread *l)
{
    if (pthread_create(&l->thread, NULL, run, l) != 0)
        return BM_FAIL(BM_ERR_MEMORY, "no thread to exchange with");
    l->running = true;
    return BM_OK;
}

bm_status bm_comm_thread_open(bm_comm_thread **out, bm_comm *comm)
{
    bm_comm_thread *l = calloc(1, sizeof *l);
    bm_status status = BM_OK;

    if (l == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a lane");
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    BM_TRY_DONE(bm_comm_twin(&l->comm, comm));
    BM_TRY_DONE(bm_comm_agree(comm, start(l)));
    *out = l;
    l = NULL;
done:
    bm_comm_thread_close(l);
    return status;
}

void bm_comm_thread_close(bm_comm_thread *l)
{
    if (l == NULL)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    if (l->running)
        pthread_join(l->thread, NULL);
    bm_comm_close(l->comm);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

bm_comm *bm_comm_thread_comm(const bm_comm_thread *l)
{
    return l->comm;
}

int64_t bm_comm_thread_put(bm_comm_thread *l, bm_comm_thread_work *work,
                           void *self)
{
    int64_t ticket = 0;

    pthread_mutex_lock(&l->lock);
    while (l->put - l->done == BM_COMM_THREAD_ROOM)
        pthread_cond_wait(&l->changed, &l->lock);
    l->ring[l->put % BM_COMM_THREAD_ROOM] = (job){work, self};
    ticket = ++l->put;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return ticket;
}

bm_status bm_comm_thread_wait(bm_comm_thread *l, int64_t ticket)
{
    bm_status status = BM_OK;

    pthread_mutex_lock(&l->lock);
    BM_ASSERT(ticket <= l->put);
    while (l->done < ticket)
        pthread_cond_wait(&l->changed, &l->lock);
    if (l->failed != BM_OK)
        status = BM_FAIL(l->failed, "%s", l->error);
    l->failed = BM_OK;
    pthread_mutex_unlock(&l->lock);
    return status;
}

bm_status bm_comm_thread_wait_all(bm_comm_thread *l)
{
    int64_t all = 0;

    pthread_mutex_lock(&l->lock);
    all = l->put;
    pthread_mutex_unlock(&l->lock);
    return bm_comm_thread_wait(l, all);
}
