/* operations_recurrent.c - LSTM and GRU. */
#include "tests/compute/operations/subjects.h"

#include <math.h>
#include <string.h>

/* {T, B, D, H, R, cell, P} */
enum {
    RECURRENT_X,
    RECURRENT_WX,
    RECURRENT_WH,
    RECURRENT_B,
    RECURRENT_WR,
    RECURRENT_DY,
    RECURRENT_Y,
    RECURRENT_DX,
    RECURRENT_DWX,
    RECURRENT_DWH,
    RECURRENT_DB,
    RECURRENT_DWR
};

static size_t matrices(const trial *t)
{
    return t->shape[5] == BM_GRU ? 3 : 4;
}

/* Outputs of a direction. */
static size_t width_of(const trial *t)
{
    return t->shape[6] > 0 ? t->shape[6] : t->shape[3];
}

static void make_recurrent(trial *t)
{
    size_t T = t->shape[0], B = t->shape[1], D = t->shape[2];
    size_t H = t->shape[3], R = t->shape[4], G = matrices(t);
    size_t Y = width_of(t), P = t->shape[6];

    draw_frames(t, T, B, each_frame);
    set_padding(&t->in, drawn(t, INPUT, T * B * D), D, 0);
    drawn(t, INPUT, R * G * H * D);
    drawn(t, INPUT, R * G * H * Y);
    drawn(t, INPUT, R * 4 * H);
    drawn(t, INPUT, R * P * H);
    set_padding(&t->in, drawn(t, INPUT, T * B * R * Y), R * Y, NAN);
    output(t, T * B * R * Y);
    output(t, T * B * D);
    output(t, R * G * H * D);
    output(t, R * G * H * Y);
    output(t, R * 4 * H);
    if (P > 0)
        output(t, R * P * H);
    else
        drawn(t, INPUT, 1); /* not used */
}

static void queue_recurrent(bm_backend *be, trial *t, float *const *x)
{
    bm_recurrent l = {.cell = (bm_cell)t->shape[5],
                      .n_in = t->shape[2],
                      .n_hidden = t->shape[3],
                      .directions = t->shape[4],
                      .wx = x[RECURRENT_WX],
                      .wh = x[RECURRENT_WH],
                      .b = x[RECURRENT_B],
                      .n_projected = t->shape[6],
                      .wr = x[RECURRENT_WR]};
    float *kept = scratch(be, t, bm_recurrent_kept(be, &l, t->in));

    bm_recurrent_forward(be, &l, t->in, x[RECURRENT_X], x[RECURRENT_Y], kept);
    bm_recurrent_backward(be, &l, t->in, x[RECURRENT_X], x[RECURRENT_Y],
                          x[RECURRENT_DY], kept, x[RECURRENT_DX],
                          x[RECURRENT_DWX], x[RECURRENT_DWH], x[RECURRENT_DB],
                          x[RECURRENT_DWR]);
}

/* Row `row` of a matrix [.., n] times v. */
static double row_times(const double *w, size_t row, size_t n, const double *v)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += w[row * n + i] * v[i];
    return sum;
}

/* h of cell j of direction r, from x and h of the frame before. */
static double next_h(const trial *t, double *const *x, size_t r, size_t j,
                     const double *input, const double *h, double *c)
{
    size_t D = t->shape[2], H = t->shape[3], G = matrices(t);
    const double *b = x[RECURRENT_B] + r * 4 * H + j;
    double in[4], back[4], reset, update;

    for (size_t k = 0; k < G; k++) {
        in[k] = row_times(x[RECURRENT_WX], (r * G + k) * H + j, D, input);
        back[k] =
            row_times(x[RECURRENT_WH], (r * G + k) * H + j, width_of(t), h);
    }
    if (G == 4) {
        *c = expect_activation(BM_SIGMOID, in[1] + back[1] + b[H]) * *c +
             expect_activation(BM_SIGMOID, in[0] + back[0] + b[0]) *
                 tanh(in[2] + back[2] + b[2 * H]);
        return expect_activation(BM_SIGMOID, in[3] + back[3] + b[3 * H]) *
               tanh(*c);
    }
    reset = expect_activation(BM_SIGMOID, in[0] + back[0] + b[0]);
    update = expect_activation(BM_SIGMOID, in[1] + back[1] + b[H]);
    return update * h[j] +
           (1 - update) * tanh(in[2] + b[2 * H] + reset * (back[2] + b[3 * H]));
}

/* One direction of one sequence. */
static void recurrent_direction(const trial *t, double *const *x, size_t r,
                                size_t b)
{
    enum { MOST = 16 };
    size_t B = t->shape[1], D = t->shape[2], H = t->shape[3], R = t->shape[4];
    size_t length = (size_t)t->in_frames[b];
    size_t Y = width_of(t);
    double h[MOST] = {0}, c[MOST] = {0}, next[MOST];

    assert_true(H <= MOST);
    for (size_t step = 0; step < length; step++) {
        size_t at = (r == 0 ? step : length - 1 - step) * B + b;
        const double *input = x[RECURRENT_X] + at * D;

        for (size_t j = 0; j < H; j++)
            next[j] = next_h(t, x, r, j, input, h, &c[j]);
        for (size_t k = 0; k < Y; k++)
            h[k] = t->shape[6] == 0
                       ? next[k]
                       : row_times(x[RECURRENT_WR], r * Y + k, H, next);
        memcpy(x[RECURRENT_Y] + (at * R + r) * Y, h, Y * sizeof *h);
    }
}

static void recurrent(const trial *t, double *const *x)
{
    memset(x[RECURRENT_Y], 0, t->arrays[RECURRENT_Y].n * sizeof(double));
    for (size_t r = 0; r < t->shape[4]; r++)
        for (size_t b = 0; b < t->shape[1]; b++)
            recurrent_direction(t, x, r, b);
}

static const subject rows[] = {
    {"recurrent_kept recurrent_forward recurrent_backward",
     false,
     make_recurrent,
     queue_recurrent,
     recurrent,
     RECURRENT_Y,
     RECURRENT_DY,
     {{RECURRENT_X, RECURRENT_DX},
      {RECURRENT_WX, RECURRENT_DWX},
      {RECURRENT_WH, RECURRENT_DWH},
      {RECURRENT_B, RECURRENT_DB},
      {RECURRENT_WR, RECURRENT_DWR}},
     1e-5,
     0x1p-5,
     {{5, 4, 3, 5, 2, BM_LSTM},
      {4, 3, 2, 8, 1, BM_LSTM},
      {1, 1, 3, 1, 2, BM_LSTM},
      {5, 4, 3, 5, 2, BM_LSTM, 3},
      {4, 3, 2, 8, 1, BM_LSTM, 4},
      {5, 4, 3, 5, 2, BM_GRU},
      {4, 3, 2, 8, 1, BM_GRU},
      {1, 1, 3, 1, 2, BM_GRU}}},
};

const subjects recurrent_subjects = {rows, sizeof rows / sizeof *rows};
