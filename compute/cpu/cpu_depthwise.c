/*
 * cpu_depthwise.c - convolution over time of each feature alone. Threads take
 * frames of y and of dx, and rows of the weights' gradient: each number is
 * summed by one thread, in one order.
 */
#include "compute/cpu/cpu.h"

#include <string.h>

typedef struct job {
    const bm_depthwise *c;
    const bm_loops *loops;
    bm_extent in, out;
    size_t threads;
    const float *x, *dy;
    float *y, *dx, *dw, *db;
} job;

static job job_of(bm_backend *be, const bm_depthwise *c, bm_extent in,
                  bm_extent out)
{
    return (job){.c = c,
                 .loops = bm_cpu_isa(be)->loops,
                 .in = in,
                 .out = out,
                 .threads = bm_thread_pool_threads(bm_cpu_of(be)->pool)};
}

/* Places from .. from + n - 1 of an order. */
typedef struct range {
    size_t from, n;
} range;

static range between(size_t from, size_t to)
{
    return (range){from, from < to ? to - from : 0};
}

/* The taps of frame t of y that lie on a frame of x. */
static range taps_over(const job *j, size_t t, size_t b)
{
    bm_window w = j->c->time;
    size_t first = t * w.stride, end = (size_t)j->in.frames[b] + w.before;
    size_t to = end > first ? end - first : 0;

    return between(first < w.before ? w.before - first : 0,
                   to < w.size ? to : w.size);
}

static void forward_frame(const job *j, size_t t, size_t b)
{
    size_t D = j->c->width;
    float *y = j->y + bm_cpu_at(j->out, t, b, D);
    range i = taps_over(j, t, b);
    size_t from = t * j->c->time.stride + i.from - j->c->time.before;

    if (t >= (size_t)j->out.frames[b]) {
        memset(y, 0, D * sizeof *y);
        return;
    }
    memcpy(y, j->c->b, D * sizeof *y);
    if (i.n > 0)
        j->loops->taps(i.n, D, j->x + bm_cpu_at(j->in, from, b, D),
                       (ptrdiff_t)(j->in.B * D), j->c->w + i.from * D,
                       (ptrdiff_t)D, y);
}

static void forward_part(void *self, size_t part)
{
    const job *j = self;
    size_t B = j->out.B, all = j->out.T * B;
    size_t to = bm_part(all, 1, j->threads, part + 1);

    for (size_t k = bm_part(all, 1, j->threads, part); k < to; k++)
        forward_frame(j, k / B, k % B);
}

void bm_cpu_depthwise_forward(bm_backend *be, const bm_depthwise *c,
                              bm_extent in, bm_extent out, const float *x,
                              float *y)
{
    job j = job_of(be, c, in, out);

    j.x = x;
    j.y = y;
    bm_cpu_run(be, j.threads, forward_part, &j);
}

/* The frames of y that have frame t of x under a tap; the first of them under
 * the last such tap. */
static range frames_over(const job *j, size_t t, size_t b)
{
    bm_window w = j->c->time;
    size_t at = t + w.before, frames = (size_t)j->out.frames[b];
    size_t from = at < w.size ? 0 : (at - w.size) / w.stride + 1;
    size_t to = at / w.stride + 1;

    return between(from, to < frames ? to : frames);
}

static void backward_frame(const job *j, size_t t, size_t b)
{
    size_t D = j->c->width, stride = j->c->time.stride;
    float *dx = j->dx + bm_cpu_at(j->in, t, b, D);
    range k = frames_over(j, t, b);
    size_t tap = t + j->c->time.before - k.from * stride;

    memset(dx, 0, D * sizeof *dx);
    if (t < (size_t)j->in.frames[b] && k.n > 0)
        j->loops->taps(k.n, D, j->dy + bm_cpu_at(j->out, k.from, b, D),
                       (ptrdiff_t)(j->out.B * D), j->c->w + tap * D,
                       -(ptrdiff_t)(stride * D), dx);
}

static void backward_part(void *self, size_t part)
{
    const job *j = self;
    size_t B = j->in.B, all = j->in.T * B;
    size_t to = bm_part(all, 1, j->threads, part + 1);

    for (size_t k = bm_part(all, 1, j->threads, part); k < to; k++)
        backward_frame(j, k / B, k % B);
}

/* The frames of y whose tap i lies on a frame of x. */
static range frames_under(const job *j, size_t i, size_t b)
{
    bm_window w = j->c->time;
    size_t frames = (size_t)j->out.frames[b];
    size_t end = (size_t)j->in.frames[b] + w.before;
    size_t from = i < w.before ? (w.before - i - 1) / w.stride + 1 : 0;
    size_t to = end > i ? (end - i - 1) / w.stride + 1 : 0;

    return between(from, to < frames ? to : frames);
}

/* Row i of dw; after the last one, db. */
static void learn_row(const job *j, size_t i)
{
    size_t D = j->c->width, stride = j->c->time.stride;
    bool bias = i == j->c->time.size;
    float *sum = bias ? j->db : j->dw + i * D;

    memset(sum, 0, D * sizeof *sum);
    for (size_t b = 0; b < j->out.B; b++) {
        range t = frames_under(j, i, b);
        size_t at = t.from * stride + i - j->c->time.before;
        size_t apart = j->out.B * D;

        if (bias)
            j->loops->add_rows((size_t)j->out.frames[b], D, apart,
                               j->dy + b * D, sum);
        else if (t.n > 0)
            j->loops->taps(t.n, D, j->x + bm_cpu_at(j->in, at, b, D),
                           (ptrdiff_t)(stride * j->in.B * D),
                           j->dy + bm_cpu_at(j->out, t.from, b, D),
                           (ptrdiff_t)apart, sum);
    }
}

static void learn_part(void *self, size_t part)
{
    const job *j = self;

    for (size_t i = part; i <= j->c->time.size; i += j->threads)
        learn_row(j, i);
}

void bm_cpu_depthwise_backward(bm_backend *be, const bm_depthwise *c,
                               bm_extent in, bm_extent out, const float *x,
                               const float *dy, float *dx, float *dw, float *db)
{
    job j = job_of(be, c, in, out);

    j.x = x;
    j.dy = dy;
    j.dx = dx;
    j.dw = dw;
    j.db = db;
    bm_cpu_run(be, j.threads, learn_part, &j);
    if (dx != NULL)
        bm_cpu_run(be, j.threads, backward_part, &j);
}
