/*
 * cpu_conv.c - convolution of columns of pixels, channels last.
 *
 * A chunk of a sequence's frames is copied between zeros, so that no window
 * leaves it; it stays in the L2 cache. There the windows of one column, from
 * top to bottom, are the rows of a matrix that need not be copied again:
 *
 *     y[t'] = b + sum over i < time.size of windows(x[t' stride + i]) w[i]
 *
 * The gradient of x is the same sum over dy: apart by the strides, with zeros
 * between, with the kernel turned round in time and height, and stride 1.
 */
#include "compute/cpu.h"

#include <string.h>

enum { LINE = 64 / sizeof(float), CHUNK = 1 << 14 /* floats */ };

/* What is convolved with what kind of window; not with which weights. */
typedef struct sweep {
    const bm_isa *isa;
    bm_extent in, out;
    size_t height, channels;         /* of x */
    size_t out_height, out_channels; /* of y */
    bm_window time, rows; /* `after` follows from the sizes, and is not used */
    size_t apart[2];      /* places from frame to frame of x, row to row */
    size_t column;        /* floats of a frame of x between its zeros */
    size_t chunk;         /* frames of y at a time */
} sweep;

static size_t round_up(size_t n)
{
    return (n + LINE - 1) / LINE * LINE;
}

/* Columns that n frames of y need. */
static size_t columns_of(const sweep *s, size_t n)
{
    return (n - 1) * s->time.stride + s->time.size;
}

static void measure(sweep *s)
{
    size_t most = 0;

    s->column =
        ((s->out_height - 1) * s->rows.stride + s->rows.size) * s->channels;
    most = CHUNK / s->column;
    s->chunk =
        most > s->time.size ? (most - s->time.size) / s->time.stride + 1 : 1;
}

static sweep forward_sweep(const bm_conv *c)
{
    sweep s = {.height = c->height,
               .channels = c->channels,
               .out_height = bm_windows(c->rows, c->height),
               .out_channels = c->out_channels,
               .time = c->time,
               .rows = c->rows,
               .apart = {1, 1}};

    measure(&s);
    return s;
}

static bm_window turned(bm_window w)
{
    return (bm_window){w.size, 1, w.size - 1 - w.before, 0};
}

static sweep backward_sweep(const bm_conv *c)
{
    sweep s = {.height = bm_windows(c->rows, c->height),
               .channels = c->out_channels,
               .out_height = c->height,
               .out_channels = c->channels,
               .time = turned(c->time),
               .rows = turned(c->rows),
               .apart = {c->time.stride, c->rows.stride}};

    measure(&s);
    return s;
}

/* Floats: columns, weights packed, weights turned, and a row of y. */
typedef struct scratch {
    float *columns, *packed, *turned, *row;
} scratch;

static size_t kernel(const sweep *s)
{
    return s->time.size * s->rows.size * s->channels;
}

/* From `work`, or NULLs; returns the floats it takes. */
static size_t carve(const sweep *s, float *work, scratch *out)
{
    size_t sizes[4] = {
        columns_of(s, s->chunk) * s->column,
        bm_packed(kernel(s), s->out_channels), kernel(s) * s->out_channels,
        s->out_height * s->out_channels + bm_packed(1, s->out_channels)};
    float **views[4] = {&out->columns, &out->packed, &out->turned, &out->row};
    size_t used = 0;

    for (int i = 0; i < 4; i++) {
        *views[i] = work != NULL ? work + used : NULL;
        used += round_up(sizes[i]);
    }
    return used;
}

size_t bm_cpu_conv_work(bm_backend *be, const bm_conv *c)
{
    sweep there = forward_sweep(c), back = backward_sweep(c);
    scratch views;
    size_t a = carve(&there, NULL, &views), b = carve(&back, NULL, &views);

    (void)be;
    return a > b ? a : b;
}

/* One frame of x, [height, channels], or NULL for none, between zeros. */
static void place(const sweep *s, const float *frame, float *column)
{
    size_t C = s->channels, apart = s->apart[1], before = s->rows.before;
    size_t rows = s->column / C, n = 0;

    memset(column, 0, s->column * sizeof *column);
    if (frame == NULL || rows <= before)
        return;
    n = (rows - before - 1) / apart + 1;
    n = n < s->height ? n : s->height;
    column += before * C;
    if (apart == 1)
        memcpy(column, frame, n * C * sizeof *column);
    else
        for (size_t h = 0; h < n; h++)
            memcpy(column + h * apart * C, frame + h * C, C * sizeof *column);
}

/* The columns under frames t .. t + n - 1 of y, of sequence b. */
static void gather(const sweep *s, const float *x, size_t b, size_t t, size_t n,
                   float *columns)
{
    size_t first = t * s->time.stride, end = first + columns_of(s, n);
    size_t apart = s->apart[0], before = s->time.before;

    for (size_t i = first; i < end; i++, columns += s->column) {
        size_t from = (i - before) / apart;
        bool there = i >= before && (i - before) % apart == 0 &&
                     from < (size_t)s->in.frames[b];

        place(s,
              there ? x + bm_cpu_at(s->in, from, b, s->height * s->channels)
                    : NULL,
              columns);
    }
}

/* y of all frames; zeros past a sequence's end. w [time, rows, C, N]. */
static void convolve(const sweep *s, const float *x, const float *w,
                     const float *b, const scratch *r, float *y)
{
    const bm_conv_loops *loops = s->isa->conv;
    size_t frame = s->out_height * s->out_channels;

    loops->pack(kernel(s), s->out_channels, w, r->packed);
    memset(r->row, 0, bm_packed(1, s->out_channels) * sizeof *r->row);
    if (b != NULL)
        memcpy(r->row, b, s->out_channels * sizeof *b);
    for (size_t i = 0; i < s->out.B; i++) {
        size_t frames = (size_t)s->out.frames[i], t = 0, n = 0;

        for (; t < frames; t += n) {
            n = frames - t < s->chunk ? frames - t : s->chunk;
            gather(s, x, i, t, n, r->columns);
            for (size_t k = 0; k < n; k++)
                loops->convolve(s->out_height, s->out_channels, s->time.size,
                                s->rows.size * s->channels,
                                r->columns + k * s->time.stride * s->column,
                                s->column, s->rows.stride * s->channels,
                                r->packed, r->row,
                                y + bm_cpu_at(s->out, t + k, i, frame));
        }
        for (; t < s->out.T; t++)
            memset(y + bm_cpu_at(s->out, t, i, frame), 0, frame * sizeof *y);
    }
}

void bm_cpu_conv_forward(bm_backend *be, const bm_conv *c, bm_extent in,
                         bm_extent out, const float *x, float *y, float *work)
{
    sweep s = forward_sweep(c);
    scratch r;

    s.isa = bm_cpu_isa(be);
    s.in = in;
    s.out = out;
    carve(&s, work, &r);
    convolve(&s, x, c->w, c->b, &r, y);
}

/* dw and db are sums over the windows of all frames. */
static void learn(const sweep *s, const float *x, const float *dy,
                  const scratch *r, float *dw, float *db)
{
    const bm_isa *isa = s->isa;
    size_t N = s->out_channels, frame = s->out_height * N;
    size_t m = s->rows.size * s->channels;

    memset(dw, 0, kernel(s) * N * sizeof *dw);
    memset(db, 0, N * sizeof *db);
    memset(r->row, 0, frame * sizeof *r->row);
    for (size_t i = 0; i < s->out.B; i++) {
        size_t frames = (size_t)s->out.frames[i], n = 0;

        for (size_t t = 0; t < frames; t += n) {
            const float *d = dy + bm_cpu_at(s->out, t, i, frame);

            n = frames - t < s->chunk ? frames - t : s->chunk;
            gather(s, x, i, t, n, r->columns);
            for (size_t k = 0; k < s->time.size; k++)
                isa->conv->correlate(
                    n, s->out_height, m, N, r->columns + k * s->column,
                    s->time.stride * s->column, s->rows.stride * s->channels, d,
                    s->out.B * frame, dw + k * m * N);
            for (size_t k = 0; k < n; k++)
                isa->loops->axpby(frame, 1, d + k * s->out.B * frame, 1,
                                  r->row);
        }
    }
    for (size_t h = 0; h < s->out_height; h++)
        isa->loops->axpby(N, 1, r->row + h * N, 1, db);
}

/* w [time, rows, C, N] turned round in time and rows, [time, rows, N, C]. */
static void turn(const bm_conv *c, float *out)
{
    size_t C = c->channels, N = c->out_channels;
    size_t places = c->time.size * c->rows.size;

    for (size_t i = 0; i < places; i++) {
        const float *w = c->w + (places - 1 - i) * C * N;
        for (size_t n = 0; n < N; n++)
            for (size_t k = 0; k < C; k++)
                *out++ = w[k * N + n];
    }
}

void bm_cpu_conv_backward(bm_backend *be, const bm_conv *c, bm_extent in,
                          bm_extent out, const float *x, const float *dy,
                          float *work, float *dx, float *dw, float *db)
{
    sweep there = forward_sweep(c), back = backward_sweep(c);
    scratch r;

    there.isa = back.isa = bm_cpu_isa(be);
    there.in = back.out = in;
    there.out = back.in = out;
    carve(&there, work, &r);
    learn(&there, x, dy, &r, dw, db);
    if (dx == NULL)
        return;
    carve(&back, work, &r);
    turn(c, r.turned);
    convolve(&back, dy, r.turned, NULL, &r, dx);
}
