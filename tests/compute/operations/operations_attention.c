/* operations_attention.c - positions and weights of self-attention. */
#include "tests/compute/operations/subjects.h"

#include <math.h>

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

static const subject rows[] = {
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
};

const subjects attention_subjects = {rows, sizeof rows / sizeof *rows};
