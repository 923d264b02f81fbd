/* cuda_conv.c - convolution of columns of pixels, by the engine that is chosen.
 */
#include "compute/cuda/image/cuda_conv.h"
#include "compute/cuda/cuda_choice.h"

#include <stdio.h>
#include <stdlib.h>

static const bm_conv_engine *const engines[] = {
#define X(name) &bm_conv_engine_##name,
    BM_CONV_ENGINES(X)
#undef X
        NULL,
};

/* A layer and a batch, and what stands for them when time is taken. */
typedef struct trial {
    bm_backend *be;
    const bm_conv *c;
    bm_extent in, out;
    bm_conv standing;
    bm_extent from, to;
    float *w, *b, *x, *y, *dy, *dx, *dw, *db, *work;
    int32_t *frames; /* [2, B] */
} trial;

static const char *name(size_t i)
{
    return engines[i] != NULL ? engines[i]->name : NULL;
}

static const char *obstacle(void *self, size_t i)
{
    const trial *t = self;

    if (engines[i]->obstacle == NULL)
        return NULL;
    return engines[i]->obstacle(t->be, t->c, t->in, t->out);
}

static void clear(void *self, size_t i)
{
    trial *t = self;
    float **all[] = {&t->w,  &t->b,  &t->x,  &t->y,   &t->dy,
                     &t->dx, &t->dw, &t->db, &t->work};

    (void)i;
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        if (*all[k] != NULL)
            bm_cuda_free(t->be, *all[k]);
        *all[k] = NULL;
    }
    free(t->frames);
    t->frames = NULL;
}

static bm_status prepare(void *self, size_t i)
{
    trial *t = self;
    bm_backend *be = t->be;
    const bm_conv *c = t->c;
    size_t B = t->in.B, T = bm_choice_frames(t->in.T);
    size_t windows = bm_windows(c->time, T), N = c->out_channels;
    size_t n_w = c->time.size * c->rows.size * c->channels * N;
    size_t n_x = T * B * c->height * c->channels;
    size_t n_y = windows * B * bm_windows(c->rows, c->height) * N;

    (void)i;
    t->frames = malloc(2 * B * sizeof *t->frames);
    if (t->frames == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for lengths");
    for (size_t b = 0; b < B; b++) {
        t->frames[b] = (int32_t)T;
        t->frames[B + b] = (int32_t)windows;
    }
    t->from = (bm_extent){T, B, t->frames};
    t->to = (bm_extent){windows, B, t->frames + B};
    BM_TRY(bm_cuda_alloc(be, n_w, &t->w));
    BM_TRY(bm_cuda_alloc(be, N, &t->b));
    t->standing = *c;
    t->standing.w = t->w;
    t->standing.b = t->b;
    BM_TRY(bm_cuda_alloc(be, n_x, &t->x));
    BM_TRY(bm_cuda_alloc(be, n_y, &t->y));
    BM_TRY(bm_cuda_alloc(be, n_y, &t->dy));
    BM_TRY(bm_cuda_alloc(be, n_x, &t->dx));
    BM_TRY(bm_cuda_alloc(be, n_w, &t->dw));
    BM_TRY(bm_cuda_alloc(be, N, &t->db));
    return bm_cuda_alloc(be, bm_conv_im2col_work(be, c), &t->work);
}

static void step(void *self, size_t i)
{
    trial *t = self;

    engines[i]->forward(t->be, &t->standing, t->from, t->to, t->x, t->y,
                        t->work);
    engines[i]->backward(t->be, &t->standing, t->from, t->to, t->x, t->dy,
                         t->work, t->dx, t->dw, t->db);
}

/* For all calls with such a batch; NULL after a failure. */
static const bm_conv_engine *choose(bm_backend *be, const bm_conv *c,
                                    bm_extent in, bm_extent out)
{
    trial t = {.be = be, .c = c, .in = in, .out = out};
    const bm_window *time = &c->time, *rows = &c->rows;
    char shape[300];
    bm_ways ways = {.what = "conv",
                    .variable = "BMUF_CONV",
                    .shape = shape,
                    .name = name,
                    .obstacle = obstacle,
                    .prepare = prepare,
                    .step = step,
                    .clear = clear,
                    .frames = bm_choice_frames(in.T),
                    .self = &t};
    size_t i = 0;

    if (out.T == 0 || out.B == 0)
        return engines[0];
    snprintf(shape, sizeof shape,
             "H %zu C %zu N %zu time %zu/%zu %zu %zu rows %zu/%zu %zu %zu "
             "B %zu T %zu precision %d",
             c->height, c->channels, c->out_channels, time->size, time->stride,
             time->before, time->after, rows->size, rows->stride, rows->before,
             rows->after, in.B, ways.frames, (int)bm_cuda_of(be)->precision);
    i = bm_cuda_choose(be, &ways);
    return i != SIZE_MAX ? engines[i] : NULL;
}

size_t bm_cuda_conv_work(bm_backend *be, const bm_conv *c)
{
    return bm_conv_im2col_work(be, c);
}

void bm_cuda_conv_forward(bm_backend *be, const bm_conv *c, bm_extent in,
                          bm_extent out, const float *x, float *y, float *work)
{
    const bm_conv_engine *with = choose(be, c, in, out);

    if (with != NULL)
        with->forward(be, c, in, out, x, y, work);
}

void bm_cuda_conv_backward(bm_backend *be, const bm_conv *c, bm_extent in,
                           bm_extent out, const float *x, const float *dy,
                           float *work, float *dx, float *dw, float *db)
{
    const bm_conv_engine *with = choose(be, c, in, out);

    if (with != NULL)
        with->backward(be, c, in, out, x, dy, work, dx, dw, db);
}
