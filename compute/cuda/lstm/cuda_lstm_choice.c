/*
 * cuda_lstm_choice.c - which engine computes an LSTM, see cuda_choice.h. An
 * engine's time is proportional to the number of frames, so some frames stand
 * for all that are longer.
 */
#include "compute/cuda/cuda_choice.h"
#include "compute/cuda/lstm/cuda_lstm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Vectors for a layer of such a shape. */
typedef struct scratch {
    float *wx, *wh, *b;
    float *x, *y, *dy, *dx, *dwx, *dwh, *db, *kept;
    int32_t *frames;
} scratch;

/* A layer and a batch, and what stands for them when time is taken. */
typedef struct trial {
    bm_backend *be;
    const bm_lstm *l;
    bm_extent e;
    bm_lstm standing;
    bm_extent extent;
    scratch room;
} trial;

static const char *name(size_t i)
{
    return bm_lstm_engines[i] != NULL ? bm_lstm_engines[i]->name : NULL;
}

static const char *obstacle(void *self, size_t i)
{
    const trial *t = self;
    const bm_lstm_engine *engine = bm_lstm_engines[i];

    return engine->obstacle != NULL ? engine->obstacle(t->be, t->l, t->e)
                                    : NULL;
}

static void clear(void *self, size_t i)
{
    trial *t = self;
    scratch *s = &t->room;
    float *all[] = {s->wx, s->wh,  s->b,   s->x,  s->y,   s->dy,
                    s->dx, s->dwx, s->dwh, s->db, s->kept};

    (void)i;
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        if (all[k] != NULL)
            bm_cuda_free(t->be, all[k]);
    free(s->frames);
    *s = (scratch){0};
}

static bm_status prepare(void *self, size_t i)
{
    trial *t = self;
    bm_backend *be = t->be;
    const bm_lstm *l = t->l;
    scratch *s = &t->room;
    size_t B = t->e.B, T = bm_choice_frames(t->e.T);
    size_t frames = T * B, units = l->directions * l->n_hidden;
    size_t D = l->n_in, H = l->n_hidden;

    s->frames = malloc(B * sizeof *s->frames);
    if (s->frames == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for lengths");
    for (size_t b = 0; b < B; b++)
        s->frames[b] = (int32_t)T;
    t->extent = (bm_extent){T, B, s->frames};
    BM_TRY(bm_cuda_alloc(be, units * 4 * D, &s->wx));
    BM_TRY(bm_cuda_alloc(be, units * 4 * H, &s->wh));
    BM_TRY(bm_cuda_alloc(be, units * 4, &s->b));
    t->standing = (bm_lstm){D, H, l->directions, s->wx, s->wh, s->b};
    BM_TRY(bm_cuda_alloc(be, frames * D, &s->x));
    BM_TRY(bm_cuda_alloc(be, frames * units, &s->y));
    BM_TRY(bm_cuda_alloc(be, frames * units, &s->dy));
    BM_TRY(bm_cuda_alloc(be, frames * D, &s->dx));
    BM_TRY(bm_cuda_alloc(be, units * 4 * D, &s->dwx));
    BM_TRY(bm_cuda_alloc(be, units * 4 * H, &s->dwh));
    BM_TRY(bm_cuda_alloc(be, units * 4, &s->db));
    return bm_cuda_alloc(
        be, bm_lstm_engines[i]->kept(be, &t->standing, t->extent), &s->kept);
}

static void step(void *self, size_t i)
{
    trial *t = self;
    const scratch *s = &t->room;

    bm_lstm_engines[i]->forward(t->be, &t->standing, t->extent, s->x, s->y,
                                s->kept);
    bm_lstm_engines[i]->backward(t->be, &t->standing, t->extent, s->x, s->y,
                                 s->dy, s->kept, s->dx, s->dwx, s->dwh, s->db);
}

const bm_lstm_engine *bm_lstm_choose(bm_backend *be, const bm_lstm *l,
                                     bm_extent e)
{
    trial t = {.be = be, .l = l, .e = e};
    char shape[200];
    bm_ways ways = {.what = "lstm",
                    .variable = "BMUF_LSTM",
                    .shape = shape,
                    .name = name,
                    .obstacle = obstacle,
                    .prepare = prepare,
                    .step = step,
                    .clear = clear,
                    .frames = bm_choice_frames(e.T),
                    .self = &t};
    size_t i = 0;

    snprintf(shape, sizeof shape, "H %zu D %zu R %zu B %zu T %zu precision %d",
             l->n_hidden, l->n_in, l->directions, e.B, ways.frames,
             (int)bm_cuda_of(be)->precision);
    i = bm_cuda_choose(be, &ways);
    return i != SIZE_MAX ? bm_lstm_engines[i] : NULL;
}
