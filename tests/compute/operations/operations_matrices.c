/* operations_matrices.c - products, sums and copies of vectors and matrices. */
#include "tests/compute/operations/subjects.h"

#include <math.h>

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

/* {n, which b, which a} */
static void queue_blend(bm_backend *be, trial *t, float *const *x)
{
    bm_blend(be, t->shape[0], factors[t->shape[2]], x[AXPBY_Y],
             factors[t->shape[1]], x[AXPBY_X]);
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
            x[LINEAR_Y][r * N + n] =
                expect_activation((bm_activation)t->shape[3], sum);
        }
}

static const subject rows[] = {
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
};

const subjects matrices_subjects = {rows, sizeof rows / sizeof *rows};
