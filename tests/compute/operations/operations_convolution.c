/* operations_convolution.c - convolution and pooling. */
#include "tests/compute/operations/subjects.h"

#include <math.h>

/* {T, B, D, size, stride, before, after}; padding of x and dy holds NaN */
enum {
    DEPTHWISE_X,
    DEPTHWISE_W,
    DEPTHWISE_B,
    DEPTHWISE_DY,
    DEPTHWISE_Y,
    DEPTHWISE_DX,
    DEPTHWISE_DW,
    DEPTHWISE_DB
};

static bm_depthwise depthwise_of(const trial *t, const float *w, const float *b)
{
    const size_t *s = t->shape;

    return (bm_depthwise){s[2], {s[3], s[4], s[5], s[6]}, w, b};
}

static void make_depthwise(trial *t)
{
    bm_depthwise c = depthwise_of(t, NULL, NULL);
    size_t D = c.width, n = 0;

    draw_frames(t, t->shape[0], t->shape[1], c.time);
    n = t->out.T * t->out.B * D;
    set_padding(&t->in, drawn(t, INPUT, t->in.T * t->in.B * D), D, NAN);
    drawn(t, INPUT, c.time.size * D);
    drawn(t, INPUT, D);
    set_padding(&t->out, drawn(t, INPUT, n), D, NAN);
    output(t, n);
    output(t, t->in.T * t->in.B * D);
    output(t, c.time.size * D);
    output(t, D);
}

static void queue_depthwise(bm_backend *be, trial *t, float *const *x)
{
    bm_depthwise c = depthwise_of(t, x[DEPTHWISE_W], x[DEPTHWISE_B]);

    bm_depthwise_forward(be, &c, t->in, t->out, x[DEPTHWISE_X], x[DEPTHWISE_Y]);
    bm_depthwise_backward(be, &c, t->in, t->out, x[DEPTHWISE_X],
                          x[DEPTHWISE_DY], x[DEPTHWISE_DX], x[DEPTHWISE_DW],
                          x[DEPTHWISE_DB]);
}

static void depthwise(const trial *t, double *const *x)
{
    bm_depthwise c = depthwise_of(t, NULL, NULL);
    size_t D = c.width;

    for (size_t k = 0; k < t->arrays[DEPTHWISE_Y].n; k++) {
        size_t frame = k / D / t->out.B, b = k / D % t->out.B, d = k % D;
        double sum = x[DEPTHWISE_B][d];

        for (size_t i = 0; i < c.time.size; i++) {
            long at = (long)(frame * c.time.stride + i) - (long)c.time.before;

            if (at >= 0 && at < t->in_frames[b])
                sum += x[DEPTHWISE_W][i * D + d] *
                       x[DEPTHWISE_X][((size_t)at * t->in.B + b) * D + d];
        }
        x[DEPTHWISE_Y][k] = inside(&t->out, k, D) ? sum : 0;
    }
}

/* {T, B, H, C, N, taps, stride, padding on both sides and dilation over time,
 * the same over rows}; padding of x and dy holds NaN */
enum { CONV_X, CONV_W, CONV_B, CONV_DY, CONV_Y, CONV_DX, CONV_DW, CONV_DB };

static bm_conv conv_of(const trial *t, const float *w, const float *b)
{
    const size_t *s = t->shape;

    return (bm_conv){.height = s[2],
                     .channels = s[3],
                     .out_channels = s[4],
                     .time = {(s[5] - 1) * s[8] + 1, s[6], s[7], s[7]},
                     .rows = {(s[9] - 1) * s[12] + 1, s[10], s[11], s[11]},
                     .dilation = {s[8], s[12]},
                     .w = w,
                     .b = b};
}

static void make_conv(trial *t)
{
    bm_conv c = conv_of(t, NULL, NULL);
    size_t H = c.height, C = c.channels, N = c.out_channels, rows, n_w;

    draw_frames(t, t->shape[0], t->shape[1], c.time);
    rows = bm_windows(c.rows, H);
    n_w = bm_conv_taps(&c) * C * N;
    set_padding(&t->in, drawn(t, INPUT, t->in.T * t->in.B * H * C), H * C, NAN);
    drawn(t, INPUT, n_w);
    drawn(t, INPUT, N);
    set_padding(&t->out, drawn(t, INPUT, t->out.T * t->out.B * rows * N),
                rows * N, NAN);
    output(t, t->out.T * t->out.B * rows * N);
    output(t, t->in.T * t->in.B * H * C);
    output(t, n_w);
    output(t, N);
}

static void queue_conv(bm_backend *be, trial *t, float *const *x)
{
    bm_conv c = conv_of(t, x[CONV_W], x[CONV_B]);
    float *work = scratch(be, t, bm_conv_work(be, &c));

    bm_conv_forward(be, &c, t->in, t->out, x[CONV_X], x[CONV_Y], work);
    bm_conv_backward(be, &c, t->in, t->out, x[CONV_X], x[CONV_DY], work,
                     x[CONV_DX], x[CONV_DW], x[CONV_DB]);
}

/* y at row h of frame `frame` of sequence b, channel n. */
static double convolved(const trial *t, const bm_conv *c, double *const *x,
                        size_t frame, size_t b, size_t h, size_t n)
{
    const size_t *s = t->shape, K = s[5], L = s[9];
    double sum = x[CONV_B][n];

    for (size_t i = 0; i < K; i++)
        for (size_t j = 0; j < L; j++) {
            size_t at = frame * s[6] + i * s[8] - s[7];
            size_t down = h * s[10] + j * s[12] - s[11];
            size_t from = ((at * t->in.B + b) * c->height + down) * c->channels;
            size_t w = (i * L + j) * c->channels;

            if (at >= (size_t)t->in_frames[b] || down >= c->height)
                continue; /* places before the first one wrap around */
            for (size_t k = 0; k < c->channels; k++)
                sum += x[CONV_W][(w + k) * c->out_channels + n] *
                       x[CONV_X][from + k];
        }
    return sum;
}

static void conv(const trial *t, double *const *x)
{
    bm_conv c = conv_of(t, NULL, NULL);
    size_t N = c.out_channels, rows = bm_windows(c.rows, c.height);

    if (N == 0 || rows == 0)
        return; /* no output */
    for (size_t i = 0; i < t->arrays[CONV_Y].n; i++)
        x[CONV_Y][i] =
            !inside(&t->out, i, rows * N)
                ? 0
                : convolved(t, &c, x, i / (rows * N) / t->out.B,
                            i / (rows * N) % t->out.B, i / N % rows, i % N);
}

void expect_pooling(const trial *t, bm_activation f, const double *x, double *y,
                    size_t n_y)
{
    const size_t *s = t->shape;
    size_t H = s[2], C = s[3];
    size_t rows = bm_windows((bm_window){s[5], s[5], 0, s[5] - 1}, H);

    if (C == 0 || rows == 0)
        return; /* no output */
    for (size_t o = 0; o < n_y; o++) {
        size_t frame = o / (rows * C), h = o / C % rows, c = o % C;
        size_t b = frame % t->out.B;

        y[o] = inside(&t->out, o, rows * C) ? -INFINITY : 0;
        for (size_t k = 0; k < s[4] * s[5] && inside(&t->out, o, rows * C);
             k++) {
            size_t at = frame / t->out.B * s[4] + k / s[5];
            size_t down = h * s[5] + k % s[5];

            if (at < (size_t)t->in_frames[b] && down < H)
                y[o] = fmax(y[o],
                            expect_activation(
                                f, x[((at * t->in.B + b) * H + down) * C + c]));
        }
    }
}

void make_windows(trial *t)
{
    const size_t *s = t->shape;
    size_t rows = 0, n_x = 0, n_y = 0;

    draw_frames(t, s[0], s[1], side_by_side(s[4]));
    rows = bm_windows(side_by_side(s[5]), s[2]);
    n_x = t->in.T * t->in.B * s[2] * s[3];
    n_y = t->out.T * t->out.B * rows * s[3];
    set_padding(&t->in, drawn(t, INPUT, n_x), s[2] * s[3], NAN);
    set_padding(&t->out, drawn(t, INPUT, n_y), rows * s[3], NAN);
    output(t, n_y);
    output(t, n_x);
}

enum { POOL_X, POOL_DY, POOL_Y, POOL_DX };

/* All numbers of a window differ: differences have no ties. */
static void make_pooling(trial *t)
{
    array *x = NULL;

    make_windows(t);
    x = &t->arrays[POOL_X];
    for (size_t i = 0; i < x->n; i++)
        x->x[i] = isnan(x->x[i]) ? NAN : ((double)(i * 37 % 251) - 125) / 64;
}

static void queue_pooling(bm_backend *be, trial *t, float *const *x)
{
    const size_t *s = t->shape;
    bm_pooling p = {s[2], s[3], side_by_side(s[4]), side_by_side(s[5]), false};

    bm_pooling_forward(be, &p, t->in, t->out, x[POOL_X], x[POOL_Y]);
    bm_pooling_backward(be, &p, t->in, t->out, x[POOL_X], x[POOL_Y], x[POOL_DY],
                        x[POOL_DX]);
}

static void pooling(const trial *t, double *const *x)
{
    expect_pooling(t, BM_IDENTITY, x[POOL_X], x[POOL_Y], t->arrays[POOL_Y].n);
}

static const subject rows[] = {
    {"conv_work conv_forward conv_backward",
     false,
     make_conv,
     queue_conv,
     conv,
     CONV_Y,
     CONV_DY,
     {{CONV_X, CONV_DX}, {CONV_W, CONV_DW}, {CONV_B, CONV_DB}},
     1e-5,
     0x1p-6,
     {{4, 3, 5, 3, 4, 3, 1, 1, 1, 3, 1, 1, 1},
      {5, 2, 4, 2, 3, 3, 2, 1, 1, 2, 1, 0, 1},
      {3, 2, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1},
      {4, 4, 6, 1, 5, 2, 2, 1, 1, 5, 3, 2, 1},
      {7, 3, 6, 3, 4, 3, 1, 2, 2, 3, 1, 3, 3},
      {9, 2, 5, 2, 3, 2, 2, 3, 4, 3, 1, 1, 1},
      {5, 2, 8, 8, 3, 1, 1, 0, 1, 3, 2, 2, 2}}},
    {"depthwise_forward depthwise_backward",
     false,
     make_depthwise,
     queue_depthwise,
     depthwise,
     DEPTHWISE_Y,
     DEPTHWISE_DY,
     {{DEPTHWISE_X, DEPTHWISE_DX},
      {DEPTHWISE_W, DEPTHWISE_DW},
      {DEPTHWISE_B, DEPTHWISE_DB}},
     2e-5,
     0x1p-6,
     {{4, 3, 5, 3, 1, 1, 1},
      {9, 4, 17, 8, 1, 3, 4},
      {7, 4, 3, 5, 2, 2, 2},
      {5, 3, 4, 2, 3, 0, 0},
      {24, 3, 3, 31, 1, 15, 15},
      {8, 2, 3, 4, 3, 3, 1},
      {1, 1, 1, 1, 1, 0, 0}}},
    {"pooling_forward pooling_backward",
     false,
     make_pooling,
     queue_pooling,
     pooling,
     POOL_Y,
     POOL_DY,
     {{POOL_X, POOL_DX}},
     1e-6,
     0x1p-8,
     {{6, 4, 7, 3, 2, 2},
      {5, 3, 4, 16, 1, 2},
      {5, 4, 5, 2, 3, 4},
      {3, 3, 2, 5, 1, 1}}},
};

const subjects convolution_subjects = {rows, sizeof rows / sizeof *rows};
