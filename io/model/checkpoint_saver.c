#include "io/model/checkpoint_saver.h"

#include "comm/comm_thread.h"
#include "core/clock.h"
#include "core/file/path.h"
#include "core/trace/span.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bm_saver {
    bm_comm *comm;          /* borrowed */
    bm_comm_thread *thread; /* NULL: not started yet, or not to be had */
    bool alone;             /* there can be no thread */
    int64_t ticket;         /* of the checkpoint under way */
    bool pending, behind;

    /* the checkpoint under way: the thread's, while there is one */
    char paths[BM_CHECKPOINT_PATHS][PATH_MAX];
    const char *list[BM_CHECKPOINT_PATHS + 1];
    bm_checkpoint c;
    bm_state *states; /* [c.n_states] */
    bm_text *texts;
    float *copies; /* [n_copies] of all states, one after the other */
    size_t n_copies;
    bm_retention stay;
    int64_t *blocks; /* of stay */
    bm_saver_report report;
    bm_status status; /* of one that was not left behind */
    char why[1024];
};

bm_status bm_saver_open(bm_saver **out, bm_comm *comm)
{
    bm_saver *s = calloc(1, sizeof *s);

    if (s == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for checkpoints");
    s->comm = comm;
    *out = s;
    return BM_OK;
}

void bm_saver_close(bm_saver *s)
{
    if (s == NULL)
        return;
    bm_comm_thread_close(s->thread);
    free(s->states);
    free(s->texts);
    free(s->copies);
    free(s->blocks);
    free(s);
}

/* ---- what is written ----------------------------------------------------- */

/* A copy of n elements; NULL: no memory. */
static void *copy_of(const void *x, size_t n, size_t width)
{
    void *copy = calloc(n + 1, width);

    if (copy != NULL && n > 0)
        memcpy(copy, x, n * width);
    return copy;
}

/* *c, except for the numbers in its states. */
static bm_status describe(bm_saver *s, const char *const *paths,
                          const bm_checkpoint *c, const bm_retention *stay)
{
    size_t n_texts = 0;
    int n = 0;

    for (; paths[n] != NULL; n++) {
        BM_ASSERT(n < BM_CHECKPOINT_PATHS && strlen(paths[n]) < PATH_MAX);
        snprintf(s->paths[n], PATH_MAX, "%s", paths[n]);
        s->list[n] = s->paths[n];
    }
    s->list[n] = NULL;
    while (c->texts != NULL && c->texts[n_texts].key != NULL)
        n_texts++;
    free(s->states);
    free(s->texts);
    free(s->blocks);
    s->c = *c;
    s->states = copy_of(c->states, c->n_states, sizeof *s->states);
    s->texts = copy_of(c->texts, n_texts, sizeof *s->texts);
    s->blocks = copy_of(stay->blocks, stay->n, sizeof *s->blocks);
    if (s->states == NULL || s->texts == NULL || s->blocks == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to describe a checkpoint");
    s->c.states = s->states;
    s->c.texts = s->texts;
    s->stay = *stay;
    s->stay.blocks = s->blocks;
    s->report = (bm_saver_report){0};
    return BM_OK;
}

/* False: no memory. */
static bool make_room(bm_saver *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->c.n_states; i++)
        n += s->states[i].count;
    if (n <= s->n_copies)
        return true;
    free(s->copies);
    s->copies = malloc(n * sizeof *s->copies);
    s->n_copies = s->copies != NULL ? n : 0;
    return s->copies != NULL;
}

/* Copies the states to the host, and lists the copies in their place. */
static bm_status copy_states(bm_saver *s)
{
    float *to = s->copies;

    for (size_t i = 0; i < s->c.n_states; i++) {
        bm_state *x = &s->states[i];

        BM_ASSERT(x->count == 0 || (to != NULL && x->x != NULL));
        if (x->count == 0)
            continue;
        if (x->be != NULL)
            bm_get(x->be, to, x->x, x->count);
        else
            memcpy(to, x->x, x->count * sizeof *to);
        x->x = to;
        to += x->count;
    }
    s->report.copied = (uint64_t)(to - s->copies) * sizeof *to;
    for (size_t i = 0; i < s->c.n_states; i++) {
        if (s->states[i].be != NULL)
            BM_TRY(bm_sync(s->states[i].be));
        s->states[i].be = NULL;
    }
    return BM_OK;
}

/* Collective. Starts the thread at the first checkpoint. */
static bm_status start_thread(bm_saver *s)
{
    bm_status status = BM_OK;

    if (s->thread != NULL || s->alone)
        return BM_OK;
    status = bm_comm_thread_open(&s->thread, s->comm);
    s->alone = status == BM_ERR_UNSUPPORTED;
    if (status == BM_OK)
        bm_comm_be_patient(bm_comm_thread_comm(s->thread));
    return s->alone ? BM_OK : status;
}

/* ---- writing ------------------------------------------------------------- */

/* In the directory of a path. */
static void prune(const char *path, const bm_retention *stay)
{
    char directory[PATH_MAX];

    if (bm_path_folder(directory, path) == BM_OK)
        bm_checkpoint_prune(directory, stay);
}

static bm_status write_files(bm_saver *s, bm_comm *comm)
{
    double since = bm_clock();
    bm_status status =
        bm_checkpoint_save(s->list, comm, &s->c, &s->report.saved);

    s->report.write_s = bm_clock() - since;
    for (int i = 0;
         status == BM_OK && bm_comm_rank(comm) == 0 && s->list[i] != NULL; i++)
        prune(s->list[i], &s->stay);
    return status;
}

/* On the thread. */
static bm_status work(void *self)
{
    bm_saver *s = self;
    bm_span span;
    bm_status status = BM_OK;

    bm_span_thread("checkpoint");
    span = bm_span_begin("write");
    status = write_files(s, bm_comm_thread_comm(s->thread));
    (void)bm_span_end(span);
    return status;
}

bm_status bm_saver_start(bm_saver *s, const char *const *paths,
                         const bm_checkpoint *c, const bm_retention *stay,
                         bool behind)
{
    double since = bm_clock();
    int direct = !behind;

    BM_ASSERT(!s->pending);
    BM_TRY(bm_comm_agree(s->comm, describe(s, paths, c, stay)));
    if (behind) {
        BM_TRY(start_thread(s));
        direct = s->alone || !make_room(s);
        BM_TRY(bm_comm_max(s->comm, &direct, 1));
    }
    s->behind = direct == 0;
    if (s->behind) {
        BM_TRY(bm_comm_agree(s->comm, copy_states(s)));
        s->report.copy_s = bm_clock() - since;
        s->ticket = bm_comm_thread_put(s->thread, work, s);
    } else {
        s->status = write_files(s, s->comm);
        snprintf(s->why, sizeof s->why, "%s",
                 s->status != BM_OK ? bm_last_message() : "");
    }
    s->pending = true;
    return BM_OK;
}

bool bm_saver_pending(const bm_saver *s)
{
    return s->pending;
}

bool bm_saver_done(bm_saver *s)
{
    return !s->behind || bm_comm_thread_done(s->thread, s->ticket);
}

bm_status bm_saver_wait(bm_saver *s, bm_saver_report *out)
{
    bm_status status = s->status;

    BM_ASSERT(s->pending);
    s->pending = false;
    if (s->behind)
        status = bm_comm_thread_wait(s->thread, s->ticket);
    else if (status != BM_OK)
        status = BM_FAIL(status, "%s", s->why);
    *out = s->report;
    /* So that one rank reports it: the thread's comm is another one. */
    return status != BM_OK ? bm_comm_agree(s->comm, status) : BM_OK;
}
