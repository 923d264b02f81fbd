/*
 * Every operation of compute/operations.h against its definition, in plain
 * loops over doubles, for some shapes, in every precision: on the CPU with
 * every instruction set, on one thread and on three, or on the device that the
 * first argument names. Gradients are compared with central differences.
 *
 * A row of `subjects` describes an operation, or one with its backward pass;
 * see operation_rig.h. An operation without a row fails a test.
 */
#include "core/rng.h"
#include "tests/support/operation_rig.h"
#include "tests/support/support_ctc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bm_backend *device; /* NULL: the CPU */

static double apply(bm_activation f, double x)
{
    return f == BM_IDENTITY     ? x
           : f == BM_RELU       ? fmax(x, 0)
           : f == BM_LEAKY_RELU ? (x < 0 ? 0.01 * x : x)
           : f == BM_TANH       ? tanh(x)
                                : 1 / (1 + exp(-x));
}

/* ---- vectors and matrices ------------------------------------------------ */

static const double factors[] = {0, 1, 0.5, -2};

/* {n, which a, which b}; a term with factor 0 is not read */
enum { AXPBY_X, AXPBY_Y };

static void make_axpby(trial *t)
{
    array *x = drawn(t, INPUT, t->shape[0]), *y = NULL;

    y = drawn(t, UPDATED, t->shape[0]);
    for (size_t i = 0; i < t->shape[0]; i++) {
        if (factors[t->shape[1]] == 0)
            x->x[i] = NAN;
        if (factors[t->shape[2]] == 0)
            y->x[i] = NAN;
    }
}

static void queue_axpby(bm_backend *be, trial *t, float *const *x)
{
    bm_axpby(be, t->shape[0], (float)factors[t->shape[1]], x[AXPBY_X],
             (float)factors[t->shape[2]], x[AXPBY_Y]);
}

static void axpby(const trial *t, double *const *x)
{
    double a = factors[t->shape[1]], b = factors[t->shape[2]];

    for (size_t i = 0; i < t->shape[0]; i++)
        x[AXPBY_Y][i] =
            (a == 0 ? 0 : a * x[AXPBY_X][i]) + (b == 0 ? 0 : b * x[AXPBY_Y][i]);
}

/* {m, n, k, transpose a, transpose b, which beta} */
enum { GEMM_A, GEMM_B, GEMM_C };

static void make_gemm(trial *t)
{
    size_t m = t->shape[0], n = t->shape[1], k = t->shape[2];

    drawn(t, INPUT, m * k);
    drawn(t, INPUT, k * n);
    if (factors[t->shape[5]] == 0)
        output(t, m * n)->role = UPDATED;
    else
        drawn(t, UPDATED, m * n);
}

static void queue_gemm(bm_backend *be, trial *t, float *const *x)
{
    size_t m = t->shape[0], n = t->shape[1], k = t->shape[2];
    bool ta = t->shape[3], tb = t->shape[4];

    bm_gemm(be, ta, tb, 1.5F,
            ta ? bm_matrix(x[GEMM_A], k, m) : bm_matrix(x[GEMM_A], m, k),
            tb ? bm_matrix(x[GEMM_B], n, k) : bm_matrix(x[GEMM_B], k, n),
            (float)factors[t->shape[5]], bm_matrix(x[GEMM_C], m, n));
}

static void gemm(const trial *t, double *const *x)
{
    size_t m = t->shape[0], n = t->shape[1], k = t->shape[2];
    double beta = factors[t->shape[5]];

    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double *c = &x[GEMM_C][i * n + j], sum = 0;

            for (size_t l = 0; l < k; l++)
                sum += x[GEMM_A][t->shape[3] ? l * m + i : i * k + l] *
                       x[GEMM_B][t->shape[4] ? j * k + l : l * n + j];
            *c = 1.5 * sum + (beta == 0 ? 0 : beta * *c);
        }
}

/* {count, m, n, k, transpose a, transpose b, shared}. Matrices of all three lie
 * one behind the other, or, if shared, side by side in the same rows. */
enum { BATCH_A, BATCH_B, BATCH_C };

static bm_gemms gemms_of(const trial *t)
{
    const size_t *s = t->shape;
    size_t rows_a = s[4] ? s[3] : s[1], cols_a = s[4] ? s[1] : s[3];
    size_t rows_b = s[5] ? s[2] : s[3], cols_b = s[5] ? s[3] : s[2];
    size_t times = s[6] ? s[0] : 1;

    return (bm_gemms){.count = s[0],
                      .m = s[1],
                      .n = s[2],
                      .k = s[3],
                      .trans_a = s[4],
                      .trans_b = s[5],
                      .alpha = 1.5F,
                      .lda = times * cols_a,
                      .ldb = times * cols_b,
                      .ldc = times * s[2],
                      .apart_a = s[6] ? cols_a : rows_a * cols_a,
                      .apart_b = s[6] ? cols_b : rows_b * cols_b,
                      .apart_c = s[6] ? s[2] : s[1] * s[2]};
}

static void make_gemm_batch(trial *t)
{
    const size_t *s = t->shape;

    drawn(t, INPUT, s[0] * s[1] * s[3]);
    drawn(t, INPUT, s[0] * s[3] * s[2]);
    output(t, s[0] * s[1] * s[2]);
}

static void queue_gemm_batch(bm_backend *be, trial *t, float *const *x)
{
    bm_gemms g = gemms_of(t);

    bm_gemm_batch(be, &g, x[BATCH_A], x[BATCH_B], x[BATCH_C]);
}

static void gemm_batch(const trial *t, double *const *x)
{
    bm_gemms g = gemms_of(t);

    for (size_t at = 0; at < g.count * g.m * g.n; at++) {
        size_t c = at / g.m / g.n, i = at / g.n % g.m, j = at % g.n;
        const double *a = x[BATCH_A] + c * g.apart_a;
        const double *b = x[BATCH_B] + c * g.apart_b;
        double sum = 0;

        for (size_t l = 0; l < g.k; l++)
            sum += a[g.trans_a ? l * g.lda + i : i * g.lda + l] *
                   b[g.trans_b ? j * g.ldb + l : l * g.ldb + j];
        x[BATCH_C][c * g.apart_c + i * g.ldc + j] = 1.5 * sum;
    }
}

/* {rows, columns}; matrices begin one number behind their memory's begin */
enum { ADD_Y, ADD_B };

static void make_add_rows(trial *t)
{
    drawn(t, UPDATED, 1 + t->shape[0] * t->shape[1]);
    drawn(t, INPUT, t->shape[1]);
}

static void queue_add_rows(bm_backend *be, trial *t, float *const *x)
{
    bm_add_rows(be, bm_matrix(x[ADD_Y] + 1, t->shape[0], t->shape[1]),
                x[ADD_B]);
}

static void add_rows(const trial *t, double *const *x)
{
    for (size_t i = 0; i < t->shape[0] * t->shape[1]; i++)
        x[ADD_Y][1 + i] += x[ADD_B][i % t->shape[1]];
}

/* {columns, rows, where the matrix begins in its memory} */
enum { SUM_Y, SUM_B };

static void make_sum_rows(trial *t)
{
    drawn(t, INPUT, t->shape[2] + t->shape[0] * t->shape[1]);
    output(t, t->shape[0]);
}

static void queue_sum_rows(bm_backend *be, trial *t, float *const *x)
{
    bm_sum_rows(be, bm_matrix(x[SUM_Y] + t->shape[2], t->shape[1], t->shape[0]),
                x[SUM_B]);
}

static void sum_rows(const trial *t, double *const *x)
{
    for (size_t j = 0; j < t->shape[0]; j++) {
        x[SUM_B][j] = 0;
        for (size_t i = 0; i < t->shape[1]; i++)
            x[SUM_B][j] += x[SUM_Y][t->shape[2] + i * t->shape[0] + j];
    }
}

/* {outer, inner, n, outer_x, inner_x, outer_y, inner_y, floats of both} */
enum { RUNS_X, RUNS_Y };

static bm_runs runs_of(const trial *t)
{
    const size_t *s = t->shape;

    return (bm_runs){s[0], s[1], s[2], s[3], s[4], s[5], s[6]};
}

static void make_runs(trial *t)
{
    drawn(t, INPUT, t->shape[7]);
    drawn(t, UPDATED, t->shape[7]);
}

static void queue_runs(bm_backend *be, trial *t, float *const *x)
{
    bm_runs r = runs_of(t);

    bm_copy_runs(be, &r, x[RUNS_X], x[RUNS_Y]);
}

static void copy_runs(const trial *t, double *const *x)
{
    bm_runs r = runs_of(t);

    for (size_t i = 0; i < r.outer; i++)
        for (size_t j = 0; j < r.inner; j++)
            for (size_t k = 0; k < r.n; k++)
                x[RUNS_Y][i * r.outer_y + j * r.inner_y + k] =
                    x[RUNS_X][i * r.outer_x + j * r.inner_x + k];
}

/* {T, B, D}; padding holds NaN */
static const bm_window each_frame = {1, 1, 0, 0};

static void make_clear(trial *t)
{
    array *x = NULL;

    draw_frames(t, t->shape[0], t->shape[1], each_frame);
    x = drawn(t, UPDATED, t->shape[0] * t->shape[1] * t->shape[2]);
    set_padding(&t->in, x, t->shape[2], NAN);
}

static void queue_clear(bm_backend *be, trial *t, float *const *x)
{
    const size_t *s = t->shape;

    bm_clear_padding(be, t->in, (bm_tensor){x[0], 3, {s[0], s[1], s[2], 1}});
}

static void clear_padding(const trial *t, double *const *x)
{
    for (size_t i = 0; i < t->arrays[0].n; i++)
        x[0][i] = inside(&t->in, i, t->shape[2]) ? x[0][i] : 0;
}

/* ---- layers -------------------------------------------------------------- */

/* {n, function} */
enum { ACTIVATE_X, ACTIVATE_DY, ACTIVATE_Y, ACTIVATE_DX };

static void make_activate(trial *t)
{
    drawn(t, INPUT, t->shape[0]);
    drawn(t, INPUT, t->shape[0]);
    output(t, t->shape[0]);
    output(t, t->shape[0]);
}

static void queue_activate(bm_backend *be, trial *t, float *const *x)
{
    bm_activation f = (bm_activation)t->shape[1];

    bm_activate(be, f, t->shape[0], x[ACTIVATE_X], x[ACTIVATE_Y]);
    bm_activate_back(be, f, t->shape[0], x[ACTIVATE_Y], x[ACTIVATE_DY],
                     x[ACTIVATE_DX]);
}

static void activate(const trial *t, double *const *x)
{
    for (size_t i = 0; i < t->shape[0]; i++)
        x[ACTIVATE_Y][i] = apply((bm_activation)t->shape[1], x[ACTIVATE_X][i]);
}

/* The same in place. */
static void queue_activate_in_place(bm_backend *be, trial *t, float *const *x)
{
    bm_activation f = (bm_activation)t->shape[1];
    size_t n = t->shape[0];

    bm_axpby(be, n, 1, x[ACTIVATE_X], 0, x[ACTIVATE_Y]);
    bm_axpby(be, n, 1, x[ACTIVATE_DY], 0, x[ACTIVATE_DX]);
    bm_activate(be, f, n, x[ACTIVATE_Y], x[ACTIVATE_Y]);
    bm_activate_back(be, f, n, x[ACTIVATE_Y], x[ACTIVATE_DX], x[ACTIVATE_DX]);
}

/* {n}; dx is made in place of dy as well */
enum { SWISH_X, SWISH_DY, SWISH_Y, SWISH_DX };

static void make_swish(trial *t)
{
    drawn(t, INPUT, t->shape[0]);
    drawn(t, INPUT, t->shape[0]);
    output(t, t->shape[0]);
    output(t, t->shape[0]);
}

static void queue_swish(bm_backend *be, trial *t, float *const *x)
{
    bm_swish(be, t->shape[0], x[SWISH_X], x[SWISH_Y]);
    bm_swish_back(be, t->shape[0], x[SWISH_X], x[SWISH_DY], x[SWISH_DX]);
}

static void queue_swish_in_place(bm_backend *be, trial *t, float *const *x)
{
    size_t n = t->shape[0];

    bm_axpby(be, n, 1, x[SWISH_X], 0, x[SWISH_Y]);
    bm_axpby(be, n, 1, x[SWISH_DY], 0, x[SWISH_DX]);
    bm_swish(be, n, x[SWISH_Y], x[SWISH_Y]);
    bm_swish_back(be, n, x[SWISH_X], x[SWISH_DX], x[SWISH_DX]);
}

static void swish(const trial *t, double *const *x)
{
    for (size_t i = 0; i < t->shape[0]; i++)
        x[SWISH_Y][i] = x[SWISH_X][i] / (1 + exp(-x[SWISH_X][i]));
}

/* {rows, n} */
enum { GLU_X, GLU_DY, GLU_Y, GLU_DX };

static void make_glu(trial *t)
{
    size_t n = t->shape[0] * t->shape[1];

    drawn(t, INPUT, 2 * n);
    drawn(t, INPUT, n);
    output(t, n);
    output(t, 2 * n);
}

static void queue_glu(bm_backend *be, trial *t, float *const *x)
{
    bm_glu(be, t->shape[0], t->shape[1], x[GLU_X], x[GLU_Y]);
    bm_glu_back(be, t->shape[0], t->shape[1], x[GLU_X], x[GLU_DY], x[GLU_DX]);
}

static void glu(const trial *t, double *const *x)
{
    size_t n = t->shape[1];

    for (size_t i = 0; i < t->shape[0] * n; i++) {
        const double *row = x[GLU_X] + i / n * 2 * n;
        x[GLU_Y][i] = row[i % n] / (1 + exp(-row[n + i % n]));
    }
}

/* {n, key} with p = 1/4 */
enum { DROPOUT_X, DROPOUT_Y };

static void make_dropout(trial *t)
{
    drawn(t, INPUT, t->shape[0]);
    output(t, t->shape[0]);
}

static void queue_dropout(bm_backend *be, trial *t, float *const *x)
{
    bm_dropout(be, t->shape[0], 0.25F, t->shape[1], x[DROPOUT_X], x[DROPOUT_Y]);
}

static void queue_weight_dropout(bm_backend *be, trial *t, float *const *x)
{
    bm_weight_dropout(be, t->shape[0], 0.25F, t->shape[1], x[DROPOUT_X],
                      x[DROPOUT_Y]);
}

static void dropout(const trial *t, double *const *x)
{
    for (size_t i = 0; i < t->shape[0]; i++) {
        double u = (double)(bm_rng_at(t->shape[1], i) >> 40) / 16777216;

        x[DROPOUT_Y][i] = u < 0.25 ? 0 : x[DROPOUT_X][i] / 0.75;
    }
}

/* {rows, K, N, function} */
enum {
    LINEAR_X,
    LINEAR_W,
    LINEAR_B,
    LINEAR_DY,
    LINEAR_Y,
    LINEAR_DX,
    LINEAR_DW,
    LINEAR_DB
};

static void make_linear(trial *t)
{
    size_t rows = t->shape[0], K = t->shape[1], N = t->shape[2];

    drawn(t, INPUT, rows * K);
    drawn(t, INPUT, N * K);
    drawn(t, INPUT, N);
    drawn(t, CONSUMED, rows * N);
    output(t, rows * N);
    output(t, rows * K);
    output(t, N * K);
    output(t, N);
}

static void queue_linear(bm_backend *be, trial *t, float *const *x)
{
    size_t rows = t->shape[0];
    bm_linear l = {t->shape[1], t->shape[2], x[LINEAR_W], x[LINEAR_B],
                   (bm_activation)t->shape[3]};

    bm_linear_forward(be, &l, rows, x[LINEAR_X], x[LINEAR_Y]);
    bm_linear_backward(be, &l, rows, x[LINEAR_X], x[LINEAR_Y], x[LINEAR_DY],
                       x[LINEAR_DX], x[LINEAR_DW], x[LINEAR_DB]);
}

static void linear(const trial *t, double *const *x)
{
    size_t rows = t->shape[0], K = t->shape[1], N = t->shape[2];

    for (size_t r = 0; r < rows; r++)
        for (size_t n = 0; n < N; n++) {
            double sum = x[LINEAR_B][n];

            for (size_t k = 0; k < K; k++)
                sum += x[LINEAR_X][r * K + k] * x[LINEAR_W][n * K + k];
            x[LINEAR_Y][r * N + n] = apply((bm_activation)t->shape[3], sum);
        }
}

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
        *c = apply(BM_SIGMOID, in[1] + back[1] + b[H]) * *c +
             apply(BM_SIGMOID, in[0] + back[0] + b[0]) *
                 tanh(in[2] + back[2] + b[2 * H]);
        return apply(BM_SIGMOID, in[3] + back[3] + b[3 * H]) * tanh(*c);
    }
    reset = apply(BM_SIGMOID, in[0] + back[0] + b[0]);
    update = apply(BM_SIGMOID, in[1] + back[1] + b[H]);
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

/* {T, B, H, C, frames and rows of a window}: the maximum over a window of
 * f(x[i]), or 0 in padding; for pooling and behind normalisation */
static void pool(const trial *t, bm_activation f, const double *x, double *y,
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
                y[o] = fmax(
                    y[o], apply(f, x[((at * t->in.B + b) * H + down) * C + c]));
        }
    }
}

/* The arrays x, dy, y and dx. */
static void make_windows(trial *t)
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
    pool(t, BM_IDENTITY, x[POOL_X], x[POOL_Y], t->arrays[POOL_Y].n);
}

/* {T, B, H, C, frames and rows of a window, function}; SEEN: y with the given
 * mean and variance */
enum {
    NORM_X,
    NORM_DY,
    NORM_Y,
    NORM_DX,
    NORM_GAMMA,
    NORM_BETA,
    NORM_MEAN,
    NORM_VAR,
    NORM_DGAMMA,
    NORM_DBETA,
    NORM_OFF,
    NORM_SEEN
};

static void make_norm(trial *t)
{
    size_t C = t->shape[3];
    array *var = NULL;

    make_windows(t);
    for (int k = NORM_GAMMA; k <= NORM_VAR; k++)
        var = drawn(t, INPUT, C);
    for (size_t c = 0; c < C; c++)
        var->x[c] = fabs(var->x[c]);
    output(t, C);
    output(t, C);
    output(t, 2 * C);
    output(t, t->arrays[NORM_Y].n);
}

static void queue_norm(bm_backend *be, trial *t, float *const *x)
{
    const size_t *s = t->shape;
    bm_norm n = {s[2],
                 s[3],
                 x[NORM_GAMMA],
                 x[NORM_BETA],
                 x[NORM_MEAN],
                 x[NORM_VAR],
                 (bm_activation)s[6],
                 side_by_side(s[4]),
                 side_by_side(s[5])};
    float *kept = scratch(be, t, bm_norm_kept(be, &n, t->out));

    bm_norm_forward(be, &n, t->in, t->out, false, x[NORM_X], x[NORM_SEEN],
                    kept);
    bm_norm_forward(be, &n, t->in, t->out, true, x[NORM_X], x[NORM_Y], kept);
    bm_norm_backward(be, &n, t->in, t->out, x[NORM_X], x[NORM_Y], x[NORM_DY],
                     kept, x[NORM_DX], x[NORM_DGAMMA], x[NORM_DBETA],
                     x[NORM_OFF], x[NORM_OFF] + s[3]);
}

/* The mean over all places of channel c of (x - center)^power. */
static double moment(const trial *t, const double *x, size_t c, double center,
                     int power)
{
    size_t C = t->shape[3], n = 0;
    double sum = 0;

    for (size_t i = c; i < t->arrays[NORM_X].n; i += C)
        if (inside(&t->in, i, t->shape[2] * C)) {
            sum += pow(x[i] - center, power);
            n++;
        }
    return sum / (double)n;
}

static void normalise(const trial *t, double *const *x, const double *mean,
                      const double *var, double *y)
{
    size_t C = t->shape[3], n = C > 0 ? t->arrays[NORM_X].n : 0;
    double *z = zeros(n, sizeof *z);

    for (size_t i = 0; i < n; i++)
        z[i] = x[NORM_GAMMA][i % C] * (x[NORM_X][i] - mean[i % C]) /
                   sqrt(var[i % C] + BM_NORM_EPSILON) +
               x[NORM_BETA][i % C];
    pool(t, (bm_activation)t->shape[6], z, y, t->arrays[NORM_Y].n);
    free(z);
}

static void norm(const trial *t, double *const *x)
{
    enum { MOST = 40 };
    size_t C = t->shape[3];
    double mean[MOST], var[MOST];

    assert_true(C <= MOST);
    for (size_t c = 0; c < C; c++) {
        mean[c] = moment(t, x[NORM_X], c, 0, 1);
        var[c] = moment(t, x[NORM_X], c, mean[c], 2);
        x[NORM_OFF][c] = x[NORM_MEAN][c] - mean[c];
        x[NORM_OFF][C + c] = x[NORM_VAR][c] - var[c];
    }
    normalise(t, x, mean, var, x[NORM_Y]);
    normalise(t, x, x[NORM_MEAN], x[NORM_VAR], x[NORM_SEEN]);
}

/* {T, B, D}; padding of x and dy holds NaN */
enum {
    LAYERNORM_X,
    LAYERNORM_GAMMA,
    LAYERNORM_BETA,
    LAYERNORM_DY,
    LAYERNORM_Y,
    LAYERNORM_DX,
    LAYERNORM_DGAMMA,
    LAYERNORM_DBETA
};

static void make_layernorm(trial *t)
{
    size_t D = t->shape[2], n = t->shape[0] * t->shape[1] * D;

    draw_frames(t, t->shape[0], t->shape[1], each_frame);
    set_padding(&t->in, drawn(t, INPUT, n), D, NAN);
    drawn(t, INPUT, D);
    drawn(t, INPUT, D);
    set_padding(&t->in, drawn(t, INPUT, n), D, NAN);
    output(t, n);
    output(t, n);
    output(t, D);
    output(t, D);
}

static void queue_layernorm(bm_backend *be, trial *t, float *const *x)
{
    bm_layernorm n = {t->shape[2], x[LAYERNORM_GAMMA], x[LAYERNORM_BETA]};
    float *kept = scratch(be, t, bm_layernorm_kept(be, &n, t->in));

    bm_layernorm_forward(be, &n, t->in, x[LAYERNORM_X], x[LAYERNORM_Y], kept);
    bm_layernorm_backward(be, &n, t->in, x[LAYERNORM_X], x[LAYERNORM_DY], kept,
                          x[LAYERNORM_DX], x[LAYERNORM_DGAMMA],
                          x[LAYERNORM_DBETA]);
}

static void layernorm(const trial *t, double *const *x)
{
    size_t D = t->shape[2], n = t->arrays[LAYERNORM_X].n;

    for (size_t i = 0; i < n; i += D) {
        const double *from = x[LAYERNORM_X] + i;
        double *to = x[LAYERNORM_Y] + i, mean = 0, var = 0;

        for (size_t k = 0; k < D; k++)
            mean += from[k] / (double)D;
        for (size_t k = 0; k < D; k++)
            var += (from[k] - mean) * (from[k] - mean) / (double)D;
        for (size_t k = 0; k < D; k++)
            to[k] = inside(&t->in, i, D)
                        ? x[LAYERNORM_GAMMA][k] * (from[k] - mean) /
                                  sqrt(var + 1e-5) +
                              x[LAYERNORM_BETA][k]
                        : 0;
    }
}

/* {T, D} */
static void make_positions(trial *t)
{
    output(t, (2 * t->shape[0] - 1) * t->shape[1]);
}

static void queue_positions(bm_backend *be, trial *t, float *const *x)
{
    bm_positions(be, t->shape[0], t->shape[1], x[0]);
}

static void positions(const trial *t, double *const *x)
{
    size_t T = t->shape[0], D = t->shape[1];

    for (size_t k = 0; k < t->arrays[0].n; k++) {
        size_t row = k / D, even = k % D / 2 * 2;
        double p = (double)T - 1 - (double)row;
        double angle = p / pow(10000, (double)even / (double)D);

        x[0][k] = k % D == even ? sin(angle) : cos(angle);
    }
}

/* {T, B, H}; scores and their gradients hold NaN past the ends of sequences.
 * The weights are made from S and kept as A, their gradient is D. */
enum {
    ATTEND_R,
    ATTEND_S,
    ATTEND_D,
    ATTEND_A,
    ATTEND_DS,
    ATTEND_DR,
};

static bm_attention attention_of(const trial *t)
{
    return (bm_attention){t->shape[2], 0.7F};
}

/* Is number k of [B, H, T, T] of two frames of a sequence? */
static bool attends(const trial *t, size_t k)
{
    size_t T = t->shape[0], u = k % T, at = k / T % T;
    size_t b = k / T / T / t->shape[2], n = (size_t)t->in_frames[b];

    return u < n && at < n;
}

static void make_attention(trial *t)
{
    size_t T = t->shape[0], rows = t->shape[1] * t->shape[2] * T;
    array *s = NULL, *d = NULL;

    draw_frames(t, T, t->shape[1], each_frame);
    drawn(t, INPUT, rows * (2 * T - 1));
    s = drawn(t, INPUT, rows * T);
    d = drawn(t, INPUT, rows * T);
    for (size_t k = 0; k < rows * T; k++)
        if (!attends(t, k))
            s->x[k] = d->x[k] = NAN;
    output(t, rows * T);
    output(t, rows * T);
    output(t, rows * (2 * T - 1));
}

static void queue_attention(bm_backend *be, trial *t, float *const *x)
{
    bm_attention a = attention_of(t);
    size_t n = t->arrays[ATTEND_S].n;

    bm_axpby(be, n, 1, x[ATTEND_S], 0, x[ATTEND_A]);
    bm_attention_weights(be, &a, t->in, x[ATTEND_R], x[ATTEND_A]);
    bm_axpby(be, n, 1, x[ATTEND_D], 0, x[ATTEND_DS]);
    bm_attention_back(be, &a, t->in, x[ATTEND_A], x[ATTEND_DS], x[ATTEND_DR]);
}

static void attention(const trial *t, double *const *x)
{
    size_t T = t->shape[0], B = t->shape[1], H = t->shape[2];

    for (size_t k = 0; k < t->arrays[ATTEND_A].n; k += T) {
        size_t at = k / T % T, h = k / T / T % H, b = k / T / T / H;
        const double *r =
            x[ATTEND_R] + ((h * T + at) * B + b) * (2 * T - 1) + T - 1 - at;
        double sum = 0;

        for (size_t u = 0; u < T; u++)
            if (attends(t, k + u))
                sum += exp((double)0.7F * (x[ATTEND_S][k + u] + r[u]));
        for (size_t u = 0; u < T; u++)
            x[ATTEND_A][k + u] =
                attends(t, k + u)
                    ? exp((double)0.7F * (x[ATTEND_S][k + u] + r[u])) / sum
                    : 0;
    }
}

/* ---- losses -------------------------------------------------------------- */

/* {T, B, C, tenths of label smoothing} */
enum { LOSS_Y, LOSS_DY, LOSS_SCORE };

static double smoothing_of(const trial *t)
{
    return (double)t->shape[3] / 10;
}

/* KL(u || p), with p the softmax of x [C] and u uniform. */
static double spread(size_t C, const double *x)
{
    double sum = 0, mean = 0;

    for (size_t k = 0; k < C; k++) {
        sum += exp(x[k]);
        mean += x[k] / (double)C;
    }
    return log(sum) - mean - log((double)C);
}

/* dy [C] <- (1 - e) dy + e share (the derivative of the spread, by
 * differences). */
static void smooth(const trial *t, const float *y, double share, double *dy)
{
    const double h = 1e-4, e = smoothing_of(t);
    size_t C = t->shape[2];
    double x[64];

    assert_true(C <= 64);
    for (size_t k = 0; k < C; k++)
        x[k] = y[k];
    for (size_t k = 0; k < C; k++) {
        double up = 0, down = 0;

        x[k] = y[k] + h;
        up = spread(C, x);
        x[k] = y[k] - h;
        down = spread(C, x);
        x[k] = y[k];
        dy[k] = (1 - e) * dy[k] + e * share * (up - down) / (2 * h);
    }
}

/* `per_frame`: a class for each frame; else so few labels that they fit. */
static void make_loss(trial *t, bool per_frame)
{
    size_t T = t->shape[0], B = t->shape[1], C = t->shape[2], n = 0;

    draw_frames(t, T, B, each_frame);
    for (size_t b = 0; b < B; b++) {
        size_t frames = (size_t)t->in_frames[b];

        t->count[b] = (int32_t)(per_frame ? frames : frames / 2);
        for (int32_t i = 0; i < t->count[b]; i++, n++)
            t->classes[n] =
                (int32_t)(per_frame ? n * 7 % C : 1 + n * 7 % (C - 1));
    }
    assert_true(n <= sizeof t->classes / sizeof t->classes[0]);
    t->targets = (bm_targets){t->classes, t->count};
    set_padding(&t->in, drawn(t, INPUT, T * B * C), C, NAN);
    output(t, T * B * C);
    zeroed(t, UPDATED, true, sizeof(bm_score) / sizeof(double));
}

static void make_cross_entropy(trial *t)
{
    make_loss(t, true);
}

static bm_tensor logits(const trial *t, float *x)
{
    return (bm_tensor){x, 3, {t->shape[0], t->shape[1], t->shape[2], 1}};
}

static void queue_cross_entropy(bm_backend *be, trial *t, float *const *x)
{
    bm_cross_entropy(be, t->in, t->targets, (float)smoothing_of(t),
                     logits(t, x[LOSS_Y]), logits(t, x[LOSS_DY]),
                     (bm_score *)(void *)x[LOSS_SCORE]);
}

/* The logits of sequence b, end to end; free them. */
static float *sequence(const trial *t, const double *y, size_t b)
{
    size_t B = t->shape[1], C = t->shape[2], T = (size_t)t->in_frames[b];
    float *x = zeros(T * C, sizeof *x);

    for (size_t i = 0; i < T * C; i++)
        x[i] = (float)y[(i / C * B + b) * C + i % C];
    return x;
}

static size_t best_class(const float *x, size_t C)
{
    size_t best = 0;

    for (size_t k = 1; k < C; k++)
        best = x[k] > x[best] ? k : best;
    return best;
}

static void cross_entropy(const trial *t, double *const *x)
{
    size_t B = t->shape[1], C = t->shape[2], n = 0, all = 0;
    bm_score score = {.sequences = (double)B};
    double lp[64] = {0};

    assert_true(C <= 64);
    memset(x[LOSS_DY], 0, t->arrays[LOSS_DY].n * sizeof(double));
    for (size_t b = 0; b < B; b++)
        all += (size_t)t->in_frames[b];
    for (size_t b = 0; b < B; b++) {
        float *y = sequence(t, x[LOSS_Y], b);

        for (size_t i = 0; i < (size_t)t->in_frames[b]; i++, n++) {
            size_t class = (size_t)t->classes[n];

            log_softmax(C, y + i * C, lp);
            score.loss -= lp[class];
            score.errors += best_class(y + i * C, C) != class;
            for (size_t k = 0; k < C; k++)
                x[LOSS_DY][(i * B + b) * C + k] =
                    (exp(lp[k]) - (k == class)) / (double)all;
            smooth(t, y + i * C, 1 / (double)all, x[LOSS_DY] + (i * B + b) * C);
        }
        free(y);
    }
    score.frames = score.count = (double)all;
    score.chance = (double)all * log((double)C);
    memcpy(x[LOSS_SCORE], &score, sizeof score);
}

static void make_ctc(trial *t)
{
    make_loss(t, false);
}

static void queue_ctc(bm_backend *be, trial *t, float *const *x)
{
    float *work =
        scratch(be, t, bm_ctc_work(be, t->in, t->targets, t->shape[2]));

    bm_ctc(be, t->in, t->targets, BM_INFEASIBLE_SKIP, (float)smoothing_of(t),
           logits(t, x[LOSS_Y]), logits(t, x[LOSS_DY]), work,
           (bm_score *)(void *)x[LOSS_SCORE]);
}

/* Without the edit distance, which test_ctc.c has. */
static void ctc(const trial *t, double *const *x)
{
    size_t B = t->shape[1], C = t->shape[2];
    const int32_t *labels = t->classes;
    bm_score score = {.sequences = (double)B, .errors = NAN};

    memset(x[LOSS_DY], 0, t->arrays[LOSS_DY].n * sizeof(double));
    for (size_t b = 0; b < B; b++) {
        size_t T = (size_t)t->in_frames[b], L = (size_t)t->count[b];
        float *y = sequence(t, x[LOSS_Y], b);
        double *dy = zeros(T * C, sizeof *dy), lp[64] = {0};

        assert_true(C <= 64);
        score.loss += T > 0 ? ctc_reference(T, C, y, labels, L, dy) : 0;
        for (size_t i = 0; i < T * C; i++)
            x[LOSS_DY][(i / C * B + b) * C + i % C] = dy[i] / (double)B;
        for (size_t i = 0; i < T; i++) {
            log_softmax(C, y + i * C, lp);
            score.blank += exp(lp[0]);
            smooth(t, y + i * C, 1 / (double)(T * B),
                   x[LOSS_DY] + (i * B + b) * C);
        }
        score.frames += (double)T;
        score.count += (double)L;
        labels += L;
        free(y);
        free(dy);
    }
    score.chance = NAN; /* see test_ctc.c */
    memcpy(x[LOSS_SCORE], &score, sizeof score);
}

/* ---- updates ------------------------------------------------------------- */

/* {n, statistics, kind, floats that vectors begin behind their memory, which t}
 */
enum { STEP_G, STEP_V, STEP_W, STEP_SKIPPED, STEP_M, STEP_T };

static const bm_momentum momentum_kinds[] = {
    {0.125F, 0.75F, 0, 0, false},       {0.125F, 0.75F, 0, 0, true},
    {0.125F, 0.75F, 0.03125F, 0, true}, {0.125F, 0.5F, 0.03125F, 5, false},
    {0.5F, 0, 0, 1e6F, false},
};

/* The arrays g, v, w and skipped. v has numbers beside the statistics too, which
 * must not change. */
static void make_step(trial *t)
{
    size_t n = t->shape[3] + t->shape[0], statistics = t->shape[1];

    for (int k = STEP_G; k <= STEP_W; k++)
        drawn(t, k == STEP_G ? CONSUMED : UPDATED, n + statistics);
    zeroed(t, UPDATED, true, 1);
}

static double clip_of(const trial *t, const double *g, double clip)
{
    double norm = 0;

    for (size_t i = 0; i < t->shape[0]; i++)
        norm += g[i] * g[i];
    return clip > 0 && sqrt(norm) > clip ? clip / sqrt(norm) : 1;
}

static void queue_momentum(bm_backend *be, trial *t, float *const *x)
{
    size_t off = t->shape[3];

    bm_momentum_step(be, &momentum_kinds[t->shape[2]], t->shape[0], t->shape[1],
                     x[STEP_G] + off, x[STEP_V] + off, x[STEP_W] + off,
                     (double *)(void *)x[STEP_SKIPPED]);
}

static void momentum(const trial *t, double *const *x)
{
    const bm_momentum *m = &momentum_kinds[t->shape[2]];
    size_t n = t->shape[0], off = t->shape[3];
    double *g = x[STEP_G] + off, *v = x[STEP_V] + off, *w = x[STEP_W] + off;
    double scale = clip_of(t, g, m->clip);

    for (size_t i = 0; i < n; i++) {
        double step = m->rate * (scale * g[i] + m->decay * w[i]);

        v[i] = m->momentum * v[i] - step;
        w[i] += m->nesterov ? m->momentum * v[i] - step : v[i];
    }
    for (size_t i = n; i < n + t->shape[1]; i++)
        w[i] -= g[i];
}

/* {n, floats that x begins behind its memory, whether x is 0} */
enum { UNIT_X, UNIT_Y };

static void make_unit(trial *t)
{
    array *x = drawn(t, INPUT, t->shape[1] + t->shape[0]);

    for (size_t i = 0; t->shape[2] && i < x->n; i++)
        x->x[i] = 0;
    output(t, t->shape[0]);
}

static void queue_unit(bm_backend *be, trial *t, float *const *x)
{
    bm_unit(be, t->shape[0], x[UNIT_X] + t->shape[1], x[UNIT_Y]);
}

static void unit(const trial *t, double *const *x)
{
    const double *from = x[UNIT_X] + t->shape[1];
    double sum = 0;

    for (size_t i = 0; i < t->shape[0]; i++)
        sum += from[i] * from[i];
    for (size_t i = 0; i < t->shape[0]; i++)
        x[UNIT_Y][i] = sum > 0 ? from[i] / sqrt(sum) : 0;
}

static const bm_adam adam_kinds[] = {
    {0.01, 0.9, 0.999, 1e-8, 0, 0}, {0.01, 0.9, 0.999, 1e-8, 0.5, 0},
    {0.01, 0.5, 0.9, 0.1, 0.1, 10}, {0.01, 0, 0, 1e-3, 0, 100},
    {0, 0.9, 0.999, 1e-8, 0.5, 1},
};

static void make_adam(trial *t)
{
    static const double counts[] = {0, 100, 2.625};

    make_step(t);
    for (size_t i = 0; i < t->arrays[STEP_V].n; i++)
        t->arrays[STEP_V].x[i] = fabs(t->arrays[STEP_V].x[i]);
    drawn(t, UPDATED, t->arrays[STEP_V].n);
    zeroed(t, UPDATED, false, 1)->x[0] = counts[t->shape[4]];
}

static void queue_adam(bm_backend *be, trial *t, float *const *x)
{
    size_t off = t->shape[3];

    bm_adam_step(be, &adam_kinds[t->shape[2]], t->shape[0], t->shape[1],
                 x[STEP_G] + off, x[STEP_M] + off, x[STEP_V] + off,
                 x[STEP_W] + off, x[STEP_T], (double *)(void *)x[STEP_SKIPPED]);
}

static void adam(const trial *t, double *const *x)
{
    const bm_adam *a = &adam_kinds[t->shape[2]];
    size_t n = t->shape[0], off = t->shape[3];
    double *g = x[STEP_G] + off, *m = x[STEP_M] + off, *v = x[STEP_V] + off;
    double *w = x[STEP_W] + off, count = *x[STEP_T] += 1;
    double scale = clip_of(t, g, a->clip);

    for (size_t i = 0; i < n; i++) {
        double d = scale * g[i];

        m[i] = a->beta1 * m[i] + (1 - a->beta1) * d;
        v[i] = a->beta2 * v[i] + (1 - a->beta2) * d * d;
        w[i] -= a->rate *
                (a->decay * w[i] +
                 m[i] / (1 - pow(a->beta1, count)) /
                     (sqrt(v[i] / (1 - pow(a->beta2, count))) + a->epsilon));
    }
    for (size_t i = n; i < n + t->shape[1]; i++)
        w[i] -= g[i];
}

/* ---- exchange ------------------------------------------------------------ */

/* {n, without from, with an infinity} */
enum { DIFFERENCE_X, DIFFERENCE_FROM, DIFFERENCE_Y, DIFFERENCE_ODD };

static void make_difference(trial *t)
{
    array *x = drawn(t, INPUT, t->shape[0]);

    if (t->shape[2])
        x->x[t->shape[0] - 1] = INFINITY;
    drawn(t, INPUT, t->shape[0]);
    output(t, t->shape[0]);
    output(t, 1);
}

static void queue_difference(bm_backend *be, trial *t, float *const *x)
{
    bm_difference(be, t->shape[0], x[DIFFERENCE_X],
                  t->shape[1] ? NULL : x[DIFFERENCE_FROM], x[DIFFERENCE_Y],
                  x[DIFFERENCE_ODD]);
}

static void difference(const trial *t, double *const *x)
{
    *x[DIFFERENCE_ODD] = (double)t->shape[2];
    for (size_t i = 0; i < t->shape[0]; i++) {
        double y =
            x[DIFFERENCE_X][i] - (t->shape[1] ? 0 : x[DIFFERENCE_FROM][i]);

        x[DIFFERENCE_Y][i] = isfinite(y) ? y : NAN;
    }
}

/* {n, floats that x begins behind its memory} */
enum { SQUARES_X, SQUARES_SUM };

static void make_squares(trial *t)
{
    drawn(t, INPUT, t->shape[0] + t->shape[1]);
    zeroed(t, UPDATED, true, 1);
}

static void queue_squares(bm_backend *be, trial *t, float *const *x)
{
    bm_squares(be, t->shape[0], x[SQUARES_X] + t->shape[1],
               (double *)(void *)x[SQUARES_SUM]);
}

static void squares(const trial *t, double *const *x)
{
    *x[SQUARES_SUM] = 0;
    for (size_t i = 0; i < t->shape[0]; i++) {
        double a = x[SQUARES_X][t->shape[1] + i];

        *x[SQUARES_SUM] += a * a;
    }
}

/* {n, which b, which a} */
static void queue_blend(bm_backend *be, trial *t, float *const *x)
{
    bm_blend(be, t->shape[0], factors[t->shape[2]], x[AXPBY_Y],
             factors[t->shape[1]], x[AXPBY_X]);
}

/* {n, learned, with model} */
enum { FILTER_G, FILTER_Y, FILTER_PRODUCTS, FILTER_MODEL, FILTER_DELTA };

static const double eta = 0.75, zeta = 1.25, ahead = 0.5;

static void make_filter(trial *t)
{
    size_t n = t->shape[0];

    drawn(t, INPUT, n);
    drawn(t, UPDATED, n);
    zeroed(t, UPDATED, true, 3 * ((n + BM_FILTER_CHUNK - 1) / BM_FILTER_CHUNK));
    drawn(t, UPDATED, n);
    drawn(t, UPDATED, n);
}

static void queue_filter(bm_backend *be, trial *t, float *const *x)
{
    bm_filter_step f = {eta, zeta, ahead, t->shape[1], NULL, NULL};

    if (t->shape[2]) {
        f.model = x[FILTER_MODEL];
        f.delta = x[FILTER_DELTA];
    }
    bm_filter_slice(be, &f, t->shape[0], x[FILTER_G], x[FILTER_Y],
                    (double *)(void *)x[FILTER_PRODUCTS]);
}

static void filter(const trial *t, double *const *x)
{
    for (size_t i = 0; i < t->shape[0]; i++) {
        bool learned = i < t->shape[1];
        double g = x[FILTER_G][i], *delta = &x[FILTER_DELTA][i], d = g;
        double *products = x[FILTER_PRODUCTS] + i / BM_FILTER_CHUNK * 3;

        if (t->shape[2]) {
            d = *delta = learned ? eta * *delta + zeta * g : g;
            x[FILTER_MODEL][i] += d;
            x[FILTER_Y][i] = x[FILTER_MODEL][i] + (learned ? ahead * d : 0);
        } else {
            x[FILTER_Y][i] += g;
        }
        products[0] += learned ? g * g : 0;
        products[1] += learned ? g * d : 0;
        products[2] += learned ? d * d : 0;
    }
}

/* ---- the table ----------------------------------------------------------- */

/* `rounded` is 1e-6 where no precision rounds: the update of a model, and sums
 * of floats. */
static const subject subjects[] = {
    {"axpby",
     false,
     make_axpby,
     queue_axpby,
     axpby,
     0,
     0,
     {{0, 0}},
     1e-6,
     1e-6,
     {{1000, 2, 3}, {5, 1, 0}, {70, 0, 2}, {33, 0, 0}, {40000, 3, 1}}},
    {"gemm",
     false,
     make_gemm,
     queue_gemm,
     gemm,
     0,
     0,
     {{0, 0}},
     1e-5,
     0x1p-7,
     {{7, 5, 11, 0, 0, 2},
      {7, 5, 11, 0, 1, 2},
      {7, 5, 11, 1, 0, 0},
      {7, 5, 11, 1, 1, 1},
      {1, 1, 1, 0, 0, 0},
      {65, 40, 33, 0, 1, 1}}},
    {"gemm_batch",
     false,
     make_gemm_batch,
     queue_gemm_batch,
     gemm_batch,
     0,
     0,
     {{0, 0}},
     1e-5,
     0x1p-7,
     {{3, 4, 5, 6, 0, 0, 0},
      {3, 4, 5, 6, 0, 1, 1},
      {4, 7, 3, 9, 1, 0, 1},
      {2, 5, 5, 1, 1, 1, 0},
      {7, 1, 1, 3, 0, 0, 1},
      {2, 33, 17, 40, 0, 1, 1},
      {3, 8, 8, 8, 1, 0, 0}}},
    {"add_rows",
     false,
     make_add_rows,
     queue_add_rows,
     add_rows,
     0,
     0,
     {{0, 0}},
     1e-6,
     1e-6,
     {{37, 19}, {1, 1}, {3, 64}, {300, 65}}},
    {"sum_rows",
     false,
     make_sum_rows,
     queue_sum_rows,
     sum_rows,
     0,
     0,
     {{0, 0}},
     1e-6,
     1e-6,
     {{7, 0, 0},
      {5, 3, 0},
      {1, 1, 1},
      {130, 5, 0},
      {130, 5, 1},
      {1, 2000, 0},
      {6, 700, 0},
      {132, 700, 0},
      {132, 700, 1},
      {2050, 65, 0},
      {2050, 65, 1},
      {64, 300, 0}}},
    {"copy_runs",
     false,
     make_runs,
     queue_runs,
     copy_runs,
     0,
     0,
     {{0, 0}},
     0,
     0,
     {{3, 2, 4, 9, 4, 20, 5, 60}, {1, 1, 7, 0, 0, 0, 0, 9}}},
    {"clear_padding",
     false,
     make_clear,
     queue_clear,
     clear_padding,
     0,
     0,
     {{0, 0}},
     0,
     0,
     {{4, 3, 2}, {5, 4, 8}, {1, 1, 1}}},
    {"activate activate_back",
     false,
     make_activate,
     queue_activate,
     activate,
     ACTIVATE_Y,
     ACTIVATE_DY,
     {{ACTIVATE_X, ACTIVATE_DX}},
     2e-6,
     0x1p-7,
     {{103, BM_IDENTITY},
      {103, BM_RELU},
      {103, BM_LEAKY_RELU},
      {103, BM_TANH},
      {103, BM_SIGMOID},
      {1003, BM_TANH}}},
    {"activate activate_back",
     false,
     make_activate,
     queue_activate_in_place,
     activate,
     ACTIVATE_Y,
     ACTIVATE_DY,
     {{ACTIVATE_X, ACTIVATE_DX}},
     2e-6,
     0x1p-7,
     {{70, BM_IDENTITY},
      {70, BM_RELU},
      {70, BM_LEAKY_RELU},
      {70, BM_TANH},
      {70, BM_SIGMOID}}},
    {"dropout",
     false,
     make_dropout,
     queue_dropout,
     dropout,
     0,
     0,
     {{0, 0}},
     1e-6,
     0x1p-8,
     {{1003, 1}, {1003, 2}, {7, 3}}},
    {"weight_dropout",
     false,
     make_dropout,
     queue_weight_dropout,
     dropout,
     0,
     0,
     {{0, 0}},
     1e-6,
     1e-6,
     {{1003, 1}, {1003, 2}, {7, 3}}},
    {"swish swish_back",
     false,
     make_swish,
     queue_swish,
     swish,
     SWISH_Y,
     SWISH_DY,
     {{SWISH_X, SWISH_DX}},
     1e-5,
     0x1p-7,
     {{503}, {7}, {1}}},
    {"swish swish_back",
     false,
     make_swish,
     queue_swish_in_place,
     swish,
     SWISH_Y,
     SWISH_DY,
     {{SWISH_X, SWISH_DX}},
     1e-5,
     0x1p-7,
     {{503}, {7}}},
    {"glu glu_back",
     false,
     make_glu,
     queue_glu,
     glu,
     GLU_Y,
     GLU_DY,
     {{GLU_X, GLU_DX}},
     1e-5,
     0x1p-7,
     {{5, 7}, {1, 1}, {9, 33}}},
    {"linear_forward linear_backward",
     false,
     make_linear,
     queue_linear,
     linear,
     LINEAR_Y,
     LINEAR_DY,
     {{LINEAR_X, LINEAR_DX}, {LINEAR_W, LINEAR_DW}, {LINEAR_B, LINEAR_DB}},
     1e-5,
     0x1p-6,
     {{6, 5, 7, BM_IDENTITY},
      {6, 5, 7, BM_RELU},
      {9, 4, 3, BM_TANH},
      {5, 8, 8, BM_SIGMOID},
      {1, 1, 1, BM_LEAKY_RELU}}},
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
    {"norm_kept norm_forward norm_backward",
     false,
     make_norm,
     queue_norm,
     norm,
     NORM_Y,
     NORM_DY,
     {{NORM_X, NORM_DX}, {NORM_GAMMA, NORM_DGAMMA}, {NORM_BETA, NORM_DBETA}},
     2e-5,
     0x1p-7,
     {{4, 4, 5, 3, 1, 1, BM_IDENTITY},
      {5, 3, 4, 2, 2, 2, BM_RELU},
      {4, 4, 3, 17, 1, 2, BM_TANH},
      {4, 3, 6, 4, 3, 4, BM_LEAKY_RELU},
      {5, 4, 1, 1, 2, 1, BM_SIGMOID}}},
    {"layernorm_kept layernorm_forward layernorm_backward",
     false,
     make_layernorm,
     queue_layernorm,
     layernorm,
     LAYERNORM_Y,
     LAYERNORM_DY,
     {{LAYERNORM_X, LAYERNORM_DX},
      {LAYERNORM_GAMMA, LAYERNORM_DGAMMA},
      {LAYERNORM_BETA, LAYERNORM_DBETA}},
     2e-5,
     0x1p-6,
     {{4, 4, 5}, {5, 3, 16}, {3, 2, 37}, {2, 2, 270}, {70, 2, 3}, {2, 1, 1}}},
    {"positions",
     false,
     make_positions,
     queue_positions,
     positions,
     0,
     0,
     {{0, 0}},
     1e-6,
     1e-6,
     {{1, 4}, {5, 7}, {600, 6}}},
    {"attention_weights attention_back",
     false,
     make_attention,
     queue_attention,
     attention,
     ATTEND_A,
     ATTEND_D,
     {{ATTEND_S, ATTEND_DS}, {ATTEND_R, ATTEND_DR}},
     1e-5,
     0x1p-6,
     {{5, 3, 2}, {1, 2, 1}, {19, 2, 1}, {7, 4, 3}}},
    {"ctc_work ctc",
     false,
     make_ctc,
     queue_ctc,
     ctc,
     0,
     0,
     {{0, 0}},
     1e-5,
     0x1p-7,
     {{8, 4, 5},
      {13, 3, 33},
      {1, 1, 2},
      {8, 4, 5, 1},
      {13, 3, 33, 4},
      {1, 1, 2, 9}}},
    {"cross_entropy",
     false,
     make_cross_entropy,
     queue_cross_entropy,
     cross_entropy,
     0,
     0,
     {{0, 0}},
     1e-5,
     0x1p-7,
     {{7, 4, 5},
      {9, 3, 33},
      {1, 1, 1},
      {7, 4, 5, 1},
      {9, 3, 33, 4},
      {1, 1, 1, 9}}},
    {"momentum_step",
     false,
     make_step,
     queue_momentum,
     momentum,
     0,
     0,
     {{0, 0}},
     1e-6,
     1e-6,
     {{1003, 0, 0},
      {1003, 7, 1, 1},
      {70, 1, 2},
      {5003, 2, 3, 1},
      {5003, 3, 4}}},
    {"adam_step",
     false,
     make_adam,
     queue_adam,
     adam,
     0,
     0,
     {{0, 0}},
     1e-5,
     1e-6,
     {{1003, 0, 0},
      {1003, 7, 1, 1, 1},
      {70, 1, 2, 1, 2},
      {5003, 2, 3},
      {5003, 3, 4, 0, 2}}},
    {"unit",
     false,
     make_unit,
     queue_unit,
     unit,
     0,
     0,
     {{0, 0}},
     1e-6,
     1e-6,
     {{1}, {1003}, {1003, 1}, {40007, 3}, {5, 0, 1}}},
    {"difference",
     true,
     make_difference,
     queue_difference,
     difference,
     0,
     0,
     {{0, 0}},
     1e-6,
     0,
     {{1003, 0, 0}, {70, 1, 0}, {1003, 0, 1}, {5, 1, 1}}},
    {"squares",
     true,
     make_squares,
     queue_squares,
     squares,
     0,
     0,
     {{0, 0}},
     1e-6,
     0,
     {{1}, {70}, {1003, 1}, {40007, 3}}},
    {"blend",
     true,
     make_axpby,
     queue_blend,
     axpby,
     0,
     0,
     {{0, 0}},
     1e-6,
     0,
     {{1003, 2, 3}, {70, 1, 1}, {70, 0, 1}, {70, 2, 0}}},
    {"filter_slice",
     true,
     make_filter,
     queue_filter,
     filter,
     0,
     0,
     {{0, 0}},
     1e-6,
     1e-7,
     {{3000, 3000, 1}, {1030, 1000, 1}, {1024, 0, 1}, {70, 60, 0}}},
};

static void test_operations_match_their_definitions(void **state)
{
    (void)state;
    FOR_EACH (i, subjects) {
        print_message("%s\n", subjects[i].operations);
        check_subject(&subjects[i], device);
    }
}

static bool covers(const subject *s, const char *name)
{
    size_t n = strlen(name);
    const char *at = s->operations;

    for (; (at = strstr(at, name)) != NULL; at += n)
        if ((at == s->operations || at[-1] == ' ') &&
            (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

static void test_every_operation_has_a_row(void **state)
{
    static const char *const names[] = {
#define BM_OPERATION(name, ...) #name,
#define BM_SIZE_OPERATION       BM_OPERATION
#include "compute/operations.h"
    };

    (void)state;
    FOR_EACH (i, names) {
        bool covered = false;

        FOR_EACH (k, subjects)
            covered = covered || covers(&subjects[k], names[i]);
        if (!covered)
            fail_msg("no row for operation %s", names[i]);
    }
}

static void test_cpu_lacks_only_device_operations(void **state)
{
    const bm_backend_ops *ops = cpu->ops;

    (void)state;
#define BM_OPERATION(name, ...)        assert_true(ops->name != NULL);
#define BM_SIZE_OPERATION              BM_OPERATION
#define BM_DEVICE_OPERATION(name, ...) assert_true(ops->name == NULL);
#include "compute/operations.h"
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operation_has_a_row),
        cmocka_unit_test(test_cpu_lacks_only_device_operations),
        cmocka_unit_test(test_operations_match_their_definitions),
    };

    int failed = 0;

    if (argc > 1 && !have_backend(argv[1]))
        return SKIPPED;
    if (argc > 1 && bm_backend_open(&device, argv[1], 0) != BM_OK)
        return EXIT_FAILURE;
    failed =
        cmocka_run_group_tests_name("operations", tests, open_cpu, close_cpu);
    bm_backend_close(device);
    return failed;
}
