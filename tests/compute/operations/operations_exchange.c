/* operations_exchange.c - what workers exchange, and the filter. */
#include "tests/compute/operations/subjects.h"

#include <math.h>

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

static const subject rows[] = {
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

const subjects exchange_subjects = {rows, sizeof rows / sizeof *rows};
