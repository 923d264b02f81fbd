/*
 * thread_pool.c - a round is one operation. Idle threads poll for the next
 * round for some tens of microseconds before they sleep, since operations
 * follow each other closely while a network is computed.
 */
#include "compute/cpu/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { LOOKS = 1000 };

struct bm_thread_pool {
    size_t threads;
    pthread_t *others;     /* [threads - 1] */
    size_t started;        /* threads in others */
    pthread_mutex_t mutex; /* protects `begun` */
    pthread_cond_t begun;
    atomic_ulong round; /* incremented when a round begins */
    atomic_bool closing;

    /* The current round. */
    size_t parts;
    void (*work)(void *self, size_t part);
    void *self;
    atomic_size_t next; /* the next part to be taken */
    atomic_size_t busy; /* other threads that have not finished the round */
};

static void pause_briefly(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

static void take_parts(bm_thread_pool *p)
{
    size_t part = 0;

    while ((part = atomic_fetch_add(&p->next, 1)) < p->parts)
        p->work(p->self, part);
}

static void await_round(bm_thread_pool *p, unsigned long last)
{
    for (int i = 0; i < LOOKS; i++) {
        if (atomic_load(&p->round) != last)
            return;
        pause_briefly();
    }
    pthread_mutex_lock(&p->mutex);
    while (atomic_load(&p->round) == last)
        pthread_cond_wait(&p->begun, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
}

static void begin_round(bm_thread_pool *p)
{
    pthread_mutex_lock(&p->mutex);
    atomic_fetch_add(&p->round, 1);
    pthread_cond_broadcast(&p->begun);
    pthread_mutex_unlock(&p->mutex);
}

static void *serve(void *self)
{
    bm_thread_pool *p = self;

    for (unsigned long round = 0;; round++) {
        await_round(p, round);
        if (atomic_load(&p->closing))
            return NULL;
        take_parts(p);
        atomic_fetch_sub(&p->busy, 1);
    }
}

/* Starts as many threads as possible. They block all signals: the frame of a
 * handler on their stacks would overwrite numbers that oneDNN 2.6 keeps there.
 */
static void start_others(bm_thread_pool *p, size_t threads)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (p->started + 1 < threads &&
           pthread_create(&p->others[p->started], NULL, serve, p) == 0)
        p->started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bm_status bm_thread_pool_open(bm_thread_pool **out, size_t threads)
{
    bm_thread_pool *p = calloc(1, sizeof *p);
    bm_status status = BM_OK;

    BM_ASSERT(threads > 0);
    if (p == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for threads");
    p->threads = threads;
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->begun, NULL);
    p->others = calloc(threads, sizeof *p->others);
    if (p->others == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu threads", threads);
    start_others(p, threads);
    if (p->started + 1 < threads)
        BM_FAIL_DONE(BM_ERR_MEMORY, "cannot start %zu threads", threads);
    *out = p;
    p = NULL;
done:
    bm_thread_pool_close(p);
    return status;
}

void bm_thread_pool_close(bm_thread_pool *p)
{
    if (p == NULL)
        return;
    atomic_store(&p->closing, true);
    begin_round(p);
    for (size_t i = 0; i < p->started; i++)
        pthread_join(p->others[i], NULL);
    pthread_cond_destroy(&p->begun);
    pthread_mutex_destroy(&p->mutex);
    free(p->others);
    free(p);
}

size_t bm_thread_pool_threads(const bm_thread_pool *p)
{
    return p->threads;
}

void bm_thread_pool_run(bm_thread_pool *p, size_t parts,
                        void (*work)(void *self, size_t part), void *self)
{
    if (p->threads == 1 || parts < 2) {
        for (size_t part = 0; part < parts; part++)
            work(self, part);
        return;
    }
    p->parts = parts;
    p->work = work;
    p->self = self;
    atomic_store(&p->next, 0);
    atomic_store(&p->busy, p->threads - 1);
    begin_round(p);
    take_parts(p);
    for (int i = 0; atomic_load(&p->busy) > 0; i++)
        if (i < LOOKS)
            pause_briefly();
        else
            sched_yield();
}
