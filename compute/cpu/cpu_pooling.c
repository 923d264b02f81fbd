/* cpu_pooling.c - the maximum or mean of windows, channels last. Maxima of
 * windows that do not overlap, the usual case, have loops of their own. */
#include "compute/cpu/cpu.h"

#include <string.h>

/* The windows of a frame of y: the full ones, and one of the remaining rows, if
 * any. */
typedef struct column {
    bm_blocks full, last;
    size_t x, y; /* their offsets: floats */
} column;

static column column_at(const bm_pooling *p, bm_extent in, bm_extent out,
                        size_t t, size_t b)
{
    size_t H = p->height, C = p->channels, rows = p->rows.size;
    size_t windows = bm_windows(p->rows, H), full = H / rows;
    size_t from = t * p->time.size, left = (size_t)in.frames[b] - from;
    size_t frames = left < p->time.size ? left : p->time.size;
    size_t apart = in.B * H * C;

    return (column){{full, frames, rows, C, apart},
                    {windows - full, frames, H - full * rows, C, apart},
                    bm_cpu_at(in, from, b, H * C),
                    bm_cpu_at(out, t, b, windows * C)};
}

/* Threads take frames of y, or in the backward pass of windows that may overlap
 * sequences. */
typedef struct job {
    const bm_image_loops *loops;
    const bm_pooling *p;
    bm_extent in, out;
    const float *x, *top, *dy; /* top: y of the forward pass */
    float *y, *dx;             /* one of them is NULL */
    size_t parts;
} job;

static void pool_frame(const job *j, size_t t, size_t b)
{
    column c = column_at(j->p, j->in, j->out, t, b);
    size_t rows = c.full.count * j->p->channels;

    j->loops->largest(&c.full, j->x + c.x, j->y + c.y);
    j->loops->largest(&c.last, j->x + c.x + rows * c.full.rows,
                      j->y + c.y + rows);
}

static void pool_frame_back(const job *j, size_t t, size_t b)
{
    column c = column_at(j->p, j->in, j->out, t, b);
    size_t rows = c.full.count * j->p->channels;

    j->loops->largest_back(&c.full, j->x + c.x, j->top + c.y, j->dy + c.y,
                           j->dx + c.x);
    c.x += rows * c.full.rows;
    c.y += rows;
    j->loops->largest_back(&c.last, j->x + c.x, j->top + c.y, j->dy + c.y,
                           j->dx + c.x);
}

/* The places of window i along n places: from *from on, how many. */
static size_t clip(bm_window w, size_t i, size_t n, size_t *from)
{
    size_t start = i * w.stride, end = start + w.size - w.before;

    *from = start > w.before ? start - w.before : 0;
    return (end < n ? end : n) - *from;
}

/* One window, and the offset of its first place. */
static bm_blocks window_at(const job *j, size_t t, size_t b, size_t h,
                           size_t *x)
{
    const bm_pooling *p = j->p;
    size_t frame = 0, row = 0, H = p->height, C = p->channels;
    size_t frames = clip(p->time, t, (size_t)j->in.frames[b], &frame);
    size_t rows = clip(p->rows, h, H, &row);

    *x = bm_cpu_at(j->in, frame, b, H * C) + row * C;
    return (bm_blocks){1, frames, rows, C, j->in.B * H * C};
}

static void slide_frame(const job *j, size_t t, size_t b)
{
    const bm_pooling *p = j->p;
    size_t C = p->channels, windows = bm_windows(p->rows, p->height);
    size_t x = 0, y = bm_cpu_at(j->out, t, b, windows * C);

    for (size_t h = 0; h < windows; h++, y += C) {
        bm_blocks w = window_at(j, t, b, h, &x);

        if (j->y != NULL && p->mean)
            j->loops->average(&w, j->x + x, j->y + y);
        else if (j->y != NULL)
            j->loops->largest(&w, j->x + x, j->y + y);
        else if (p->mean)
            j->loops->average_add(&w, j->dy + y, j->dx + x);
        else
            j->loops->largest_add(&w, j->x + x, j->top + y, j->dy + y,
                                  j->dx + x);
    }
}

static void pool_at(const job *j, size_t t, size_t b)
{
    if (t >= (size_t)j->out.frames[b])
        return;
    if (!bm_pooling_is_plain(j->p))
        slide_frame(j, t, b);
    else if (j->y != NULL)
        pool_frame(j, t, b);
    else
        pool_frame_back(j, t, b);
}

static void pool_frames(void *self, size_t part)
{
    const job *j = self;
    size_t to = bm_part(j->out.T, 1, j->parts, part + 1);

    for (size_t t = bm_part(j->out.T, 1, j->parts, part); t < to; t++)
        for (size_t b = 0; b < j->out.B; b++)
            pool_at(j, t, b);
}

static void pool_sequences(void *self, size_t part)
{
    const job *j = self;
    size_t to = bm_part(j->out.B, 1, j->parts, part + 1);

    for (size_t t = 0; t < j->out.T; t++)
        for (size_t b = bm_part(j->out.B, 1, j->parts, part); b < to; b++)
            pool_at(j, t, b);
}

static void run(bm_backend *be, job *j)
{
    bool overlap = j->dx != NULL && !bm_pooling_is_plain(j->p);

    j->loops = bm_cpu_isa(be)->image;
    j->parts = bm_thread_pool_threads(bm_cpu_of(be)->pool);
    bm_cpu_run(be, j->parts, overlap ? pool_sequences : pool_frames, j);
}

void bm_cpu_pooling_forward(bm_backend *be, const bm_pooling *p, bm_extent in,
                            bm_extent out, const float *x, float *y)
{
    size_t n = bm_windows(p->rows, p->height) * p->channels;
    bm_tensor all = {y, 3, {out.T, out.B, n, 1}};
    job j = {.p = p, .in = in, .out = out, .x = x, .y = y};

    run(be, &j);
    bm_cpu_clear_padding(be, out, all);
}

void bm_cpu_pooling_backward(bm_backend *be, const bm_pooling *p, bm_extent in,
                             bm_extent out, const float *x, const float *y,
                             const float *dy, float *dx)
{
    bm_tensor all = {dx, 3, {in.T, in.B, p->height * p->channels, 1}};
    job j = {
        .p = p, .in = in, .out = out, .x = x, .top = y, .dy = dy, .dx = dx};

    if (!bm_pooling_is_plain(p))
        memset(dx, 0, bm_count(all) * sizeof *dx);
    run(be, &j);
    bm_cpu_clear_padding(be, in, all);
}
