/* operations_elementwise.c - functions of each number, and dropout. */
#include "core/rng.h"
#include "tests/compute/operations/subjects.h"

#include <math.h>

double expect_activation(bm_activation f, double x)
{
    return f == BM_IDENTITY     ? x
           : f == BM_RELU       ? fmax(x, 0)
           : f == BM_LEAKY_RELU ? (x < 0 ? 0.01 * x : x)
           : f == BM_TANH       ? tanh(x)
                                : 1 / (1 + exp(-x));
}

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
        x[ACTIVATE_Y][i] =
            expect_activation((bm_activation)t->shape[1], x[ACTIVATE_X][i]);
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

/* {n}, as of swish; dx is made in place of dy */
static void queue_gelu(bm_backend *be, trial *t, float *const *x)
{
    size_t n = t->shape[0];

    bm_gelu(be, n, x[SWISH_X], x[SWISH_Y]);
    bm_axpby(be, n, 1, x[SWISH_DY], 0, x[SWISH_DX]);
    bm_gelu_back(be, n, x[SWISH_X], x[SWISH_DX], x[SWISH_DX]);
}

static void gelu(const trial *t, double *const *x)
{
    for (size_t i = 0; i < t->shape[0]; i++)
        x[SWISH_Y][i] = x[SWISH_X][i] / 2 * (1 + erf(x[SWISH_X][i] / sqrt(2)));
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

static const subject rows[] = {
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
    {"gelu gelu_back",
     false,
     make_swish,
     queue_gelu,
     gelu,
     SWISH_Y,
     SWISH_DY,
     {{SWISH_X, SWISH_DX}},
     1e-5,
     0x1p-7,
     {{503}, {7}, {1}}},
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
};

const subjects elementwise_subjects = {rows, sizeof rows / sizeof *rows};
