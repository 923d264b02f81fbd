/*
 * cpu_conv.c - convolution of columns of pixels, channels last.
 *
 * A chunk of a sequence's frames is copied into a buffer padded with zeros,
 * which fits in the L2 cache, so that every window lies within it. The windows
 * of one column, from top to bottom, are the rows of a matrix without another
 * copy:
 *
 *     y[t'] = b + sum over taps i of windows(x[t' stride + i dilation]) w[i]
 *
 * The gradient of x is the same sum over dy, spread by the strides with zeros
 * between, with the kernel reversed in time and height, and stride 1.
 *
 * Threads take chunks of y and of dx, rows of the kernel's gradient and
 * elements of the bias': each number is summed by one thread, in one order.
 */
#include "compute/cpu/cpu.h"

#include <string.h>

enum { LINE = 64 / sizeof(float), CHUNK = 1 << 14 /* floats */ };

/* The geometry of a convolution, without the weights. */
typedef struct sweep {
    const bm_isa *isa;
    size_t threads;
    bm_extent in, out;
    size_t height, channels;         /* of x */
    size_t out_height, out_channels; /* of y */
    bm_window time, rows; /* `after` follows from the sizes, and is not used */
    size_t taps[2], dilation[2]; /* of a window: frames, rows */
    size_t apart[2]; /* places from frame to frame of x, row to row */
    size_t column;   /* floats of a frame of x with its padding */
    size_t chunk;    /* frames of y at a time */
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

static void measure(sweep *s, const bm_conv *c)
{
    size_t most = 0;

    memcpy(s->dilation, c->dilation, sizeof s->dilation);
    s->taps[0] = bm_window_taps(c->time, c->dilation[0]);
    s->taps[1] = bm_window_taps(c->rows, c->dilation[1]);
    s->column =
        ((s->out_height - 1) * s->rows.stride + s->rows.size) * s->channels;
    most = CHUNK / s->column;
    s->chunk =
        most > s->time.size ? (most - s->time.size) / s->time.stride + 1 : 1;
}

static sweep forward_sweep(const bm_backend *be, const bm_conv *c)
{
    sweep s = {.isa = bm_cpu_isa(be),
               .threads = bm_thread_pool_threads(bm_cpu_of(be)->pool),
               .height = c->height,
               .channels = c->channels,
               .out_height = bm_windows(c->rows, c->height),
               .out_channels = c->out_channels,
               .time = c->time,
               .rows = c->rows,
               .apart = {1, 1}};

    measure(&s, c);
    return s;
}

static bm_window turned(bm_window w)
{
    return (bm_window){w.size, 1, w.size - 1 - w.before, 0};
}

static sweep backward_sweep(const bm_backend *be, const bm_conv *c)
{
    sweep s = {.isa = bm_cpu_isa(be),
               .threads = bm_thread_pool_threads(bm_cpu_of(be)->pool),
               .height = bm_windows(c->rows, c->height),
               .channels = c->out_channels,
               .out_height = c->height,
               .out_channels = c->channels,
               .time = turned(c->time),
               .rows = turned(c->rows),
               .apart = {c->time.stride, c->rows.stride}};

    measure(&s, c);
    return s;
}

/* Floats: columns of each thread, weights packed, weights turned, and a row of
 * y. */
typedef struct scratch {
    float *columns, *packed, *turned, *row;
} scratch;

/* Buffers of one thread. */
static size_t room_for_columns(const sweep *s)
{
    return round_up(columns_of(s, s->chunk) * s->column);
}

/* Rows of the weights. */
static size_t kernel(const sweep *s)
{
    return s->taps[0] * s->taps[1] * s->channels;
}

/* What windows read of columns: dense ones have the rows of a frame side by
 * side. */
static bm_taps taps_of(const sweep *s)
{
    bm_taps t = {.frames = s->taps[0],
                 .rows = s->taps[1],
                 .n = s->channels,
                 .frame = s->dilation[0] * s->column,
                 .row = s->dilation[1] * s->channels};

    if (s->dilation[1] == 1) {
        t.rows = 1;
        t.n = s->taps[1] * s->channels;
    }
    return t;
}

/* Views into `work`, or NULLs; returns the floats that they take. */
static size_t carve(const sweep *s, float *work, scratch *out)
{
    size_t sizes[4] = {
        s->threads * room_for_columns(s), bm_packed(kernel(s), s->out_channels),
        kernel(s) * s->out_channels,
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
    sweep there = forward_sweep(be, c), back = backward_sweep(be, c);
    scratch views;
    size_t a = carve(&there, NULL, &views), b = carve(&back, NULL, &views);

    return a > b ? a : b;
}

/* Copies one frame of x, [height, channels], with zero padding; NULL: zeros. */
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

/* Frames t .. t + n - 1 of y, of sequence b. */
typedef struct chunk {
    size_t number, b, t, n; /* n = 0: the end */
} chunk;

/* The chunk after `last`, which is {0} at first. */
static chunk next(const sweep *s, chunk last)
{
    chunk c = {last.number + (last.n > 0), last.b, last.t + last.n, 0};

    while (c.b < s->out.B && c.t >= (size_t)s->out.frames[c.b])
        c = (chunk){c.number, c.b + 1, 0, 0};
    if (c.b < s->out.B) {
        size_t left = (size_t)s->out.frames[c.b] - c.t;
        c.n = left < s->chunk ? left : s->chunk;
    }
    return c;
}

/* The columns under a chunk. */
static void gather(const sweep *s, const float *x, chunk c, float *columns)
{
    size_t first = c.t * s->time.stride, end = first + columns_of(s, c.n);
    size_t apart = s->apart[0], before = s->time.before;

    for (size_t i = first; i < end; i++, columns += s->column) {
        size_t from = (i - before) / apart;
        bool there = i >= before && (i - before) % apart == 0 &&
                     from < (size_t)s->in.frames[c.b];

        place(s,
              there ? x + bm_cpu_at(s->in, from, c.b, s->height * s->channels)
                    : NULL,
              columns);
    }
}

/* The arguments of all threads. */
typedef struct job {
    const sweep *s;
    const scratch *r;
    const float *x, *dy;
    float *y, *dw;
} job;

static float *columns_for(const job *j, size_t part)
{
    return j->r->columns + part * room_for_columns(j->s);
}

static void convolve_part(void *self, size_t part)
{
    const job *j = self;
    const sweep *s = j->s;
    size_t frame = s->out_height * s->out_channels;
    bm_taps taps = taps_of(s);
    float *columns = columns_for(j, part);

    for (chunk c = next(s, (chunk){0}); c.n > 0; c = next(s, c)) {
        if (c.number % s->threads != part)
            continue;
        gather(s, j->x, c, columns);
        for (size_t k = 0; k < c.n; k++)
            s->isa->conv->convolve(
                s->out_height, s->out_channels, &taps,
                columns + k * s->time.stride * s->column,
                s->rows.stride * s->channels, j->r->packed, j->r->row,
                j->y + bm_cpu_at(s->out, c.t + k, c.b, frame));
    }
}

/* y of all frames; zeros past a sequence's end. w [time, rows, C, N]; b NULL:
 * zeros. */
static void convolve(bm_backend *be, const sweep *s, const float *x,
                     const float *w, const float *b, const scratch *r, float *y)
{
    size_t N = s->out_channels;
    bm_tensor all = {y, 3, {s->out.T, s->out.B, s->out_height * N, 1}};
    job j = {.s = s, .r = r, .x = x, .y = y};

    s->isa->conv->pack(kernel(s), N, w, r->packed);
    memset(r->row, 0, bm_packed(1, N) * sizeof *r->row);
    if (b != NULL)
        memcpy(r->row, b, N * sizeof *b);
    bm_cpu_run(be, s->threads, convolve_part, &j);
    bm_cpu_clear_padding(be, s->out, all);
}

void bm_cpu_conv_forward(bm_backend *be, const bm_conv *c, bm_extent in,
                         bm_extent out, const float *x, float *y, float *work)
{
    sweep s = forward_sweep(be, c);
    scratch r;

    s.in = in;
    s.out = out;
    carve(&s, work, &r);
    convolve(be, &s, x, c->w, c->b, &r, y);
}

/* Some rows of dw [time, rows C, N], of all frames. */
static void learn_part(void *self, size_t part)
{
    enum { TILE = 8 }; /* rows that one thread should take together */
    const job *j = self;
    const sweep *s = j->s;
    size_t N = s->out_channels, frame = s->out_height * N;
    bm_taps taps = taps_of(s);
    size_t from = bm_part(kernel(s), TILE, s->threads, part);
    size_t to = bm_part(kernel(s), TILE, s->threads, part + 1);
    float *columns = columns_for(j, part);

    for (chunk c = next(s, (chunk){0}); c.n > 0; c = next(s, c)) {
        gather(s, j->x, c, columns);
        for (size_t row = from, n = 0; row < to; row += n) {
            size_t run = row / taps.n, end = (run + 1) * taps.n;
            const float *x = columns + run / taps.rows * taps.frame +
                             run % taps.rows * taps.row + row % taps.n;

            n = (end < to ? end : to) - row;
            s->isa->conv->correlate(c.n, s->out_height, n, N, x,
                                    s->time.stride * s->column,
                                    s->rows.stride * s->channels,
                                    j->dy + bm_cpu_at(s->out, c.t, c.b, frame),
                                    s->out.B * frame, j->dw + row * N);
        }
    }
}

/* Some numbers of a frame of dy, over all frames. */
static void add_part(void *self, size_t part)
{
    const job *j = self;
    const sweep *s = j->s;
    size_t frame = s->out_height * s->out_channels;
    size_t from = bm_part(frame, LINE, s->threads, part);
    size_t count = bm_part(frame, LINE, s->threads, part + 1) - from;
    float *sum = j->r->row + from;

    memset(sum, 0, count * sizeof *sum);
    for (size_t t = 0; t < s->out.T; t++)
        for (size_t b = 0, n = 0; b < s->out.B; b += n + 1) {
            for (n = 0; b + n < s->out.B; n++)
                if (t >= (size_t)s->out.frames[b + n])
                    break;
            s->isa->loops->add_rows(
                n, count, frame, j->dy + bm_cpu_at(s->out, t, b, frame) + from,
                sum);
        }
}

/* dw and db are sums over the windows of all frames. */
static void learn(bm_backend *be, const sweep *s, const float *x,
                  const float *dy, const scratch *r, float *dw, float *db)
{
    size_t N = s->out_channels;
    job j = {.s = s, .r = r, .x = x, .dy = dy, .dw = dw};

    memset(dw, 0, kernel(s) * N * sizeof *dw);
    bm_cpu_run(be, s->threads, learn_part, &j);
    bm_cpu_run(be, s->threads, add_part, &j);
    memset(db, 0, N * sizeof *db);
    s->isa->loops->add_rows(s->out_height, N, N, r->row, db);
}

/* w [time, rows, C, N] reversed in time and rows, as [time, rows, N, C]. */
static void turn(const bm_conv *c, float *out)
{
    size_t C = c->channels, N = c->out_channels;
    size_t places = bm_conv_taps(c);

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
    sweep there = forward_sweep(be, c), back = backward_sweep(be, c);
    scratch r;

    there.in = back.out = in;
    there.out = back.in = out;
    carve(&there, work, &r);
    learn(be, &there, x, dy, &r, dw, db);
    if (dx == NULL)
        return;
    carve(&back, work, &r);
    turn(c, r.turned);
    convolve(be, &back, dy, r.turned, NULL, &r, dx);
}
