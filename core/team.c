#include "core/team.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AHEAD = 4 }; /* pieces in memory for each thread */

typedef struct slot {
    void *piece;
    bool done;
} slot;

typedef struct team {
    const bm_team_work *w;
    pthread_mutex_t source; /* around next; taken before mutex */
    pthread_mutex_t mutex;  /* protects what follows */
    pthread_cond_t changed;
    slot *slots; /* [n_slots]: piece k is in slot k % n_slots */
    size_t n_slots, begun, taken, working;
    bool ended;
    bm_status status; /* of next */
    char message[4096];
    atomic_bool stop;
} team;

typedef struct member {
    team *team;
    size_t number;
    pthread_t thread;
} member;

/* Waits until there is room for another piece, and gets it; NULL: the end. */
static void *fetch(team *t, size_t *number)
{
    void *piece = NULL;
    bm_status status = BM_OK;
    bool ended = false;

    pthread_mutex_lock(&t->source);
    pthread_mutex_lock(&t->mutex);
    while (t->begun - t->taken == t->n_slots && !atomic_load(&t->stop))
        pthread_cond_wait(&t->changed, &t->mutex);
    ended = t->ended || atomic_load(&t->stop);
    pthread_mutex_unlock(&t->mutex);
    if (!ended)
        status = t->w->next(t->w->self, &t->stop, &piece);
    pthread_mutex_lock(&t->mutex);
    if (status != BM_OK) {
        t->status = status;
        snprintf(t->message, sizeof t->message, "%s", bm_last_message());
    }
    if (status != BM_OK || piece == NULL) {
        t->ended = true;
        piece = NULL;
    } else {
        *number = t->begun++;
        t->slots[*number % t->n_slots] = (slot){piece, false};
    }
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
    pthread_mutex_unlock(&t->source);
    return piece;
}

static void *work(void *self)
{
    member *m = self;
    team *t = m->team;
    size_t number = 0;
    void *piece = NULL;

    while ((piece = fetch(t, &number)) != NULL) {
        t->w->work(t->w->self, m->number, piece);
        pthread_mutex_lock(&t->mutex);
        t->slots[number % t->n_slots].done = true;
        pthread_cond_broadcast(&t->changed);
        pthread_mutex_unlock(&t->mutex);
    }
    pthread_mutex_lock(&t->mutex);
    t->working--;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

/* The next piece in order, once it is done; NULL: there are no more. */
static void *wait_for_next(team *t)
{
    slot *s = &t->slots[t->taken % t->n_slots];
    void *piece = NULL;

    pthread_mutex_lock(&t->mutex);
    while (t->taken == t->begun ? t->working > 0 : !s->done)
        pthread_cond_wait(&t->changed, &t->mutex);
    if (t->taken < t->begun)
        piece = s->piece;
    pthread_mutex_unlock(&t->mutex);
    return piece;
}

static void advance(team *t)
{
    pthread_mutex_lock(&t->mutex);
    t->taken++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
}

static void ask_to_stop(team *t)
{
    pthread_mutex_lock(&t->mutex);
    atomic_store(&t->stop, true);
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
}

static bm_status take_all(team *t)
{
    void *piece = NULL;
    bm_status status = BM_OK;

    while (status == BM_OK && (piece = wait_for_next(t)) != NULL) {
        status = t->w->take(t->w->self, piece);
        advance(t);
    }
    ask_to_stop(t);
    return status;
}

/* Starts as many as it can; *started: how many. */
static bm_status start(team *t, member *members, size_t n, size_t *started)
{
    t->working = n;
    for (*started = 0; *started < n; ++*started) {
        member *m = &members[*started];
        int error = 0;

        *m = (member){.team = t, .number = *started};
        error = pthread_create(&m->thread, NULL, work, m);
        if (error != 0) {
            pthread_mutex_lock(&t->mutex);
            t->working -= n - *started;
            pthread_mutex_unlock(&t->mutex);
            return BM_FAIL(BM_ERR_MEMORY, "cannot start a thread: %s",
                           strerror(error));
        }
    }
    return BM_OK;
}

bm_status bm_team_run(const bm_team_work *w, size_t members)
{
    team t = {.w = w, .n_slots = AHEAD * members};
    member *all = calloc(members, sizeof *all);
    size_t started = 0;
    bm_status status = BM_OK;

    t.slots = calloc(t.n_slots, sizeof *t.slots);
    if (all == NULL || t.slots == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu threads", members);
    pthread_mutex_init(&t.source, NULL);
    pthread_mutex_init(&t.mutex, NULL);
    pthread_cond_init(&t.changed, NULL);
    status = start(&t, all, members, &started);
    if (status == BM_OK)
        status = take_all(&t);
    else
        ask_to_stop(&t);
    for (size_t i = 0; i < started; i++)
        pthread_join(all[i].thread, NULL);
    for (; t.taken < t.begun; t.taken++)
        w->drop(w->self, t.slots[t.taken % t.n_slots].piece);
    if (status == BM_OK && t.status != BM_OK)
        status = BM_FAIL(t.status, "%s", t.message);
    pthread_cond_destroy(&t.changed);
    pthread_mutex_destroy(&t.mutex);
    pthread_mutex_destroy(&t.source);
done:
    free(all);
    free(t.slots);
    return status;
}
