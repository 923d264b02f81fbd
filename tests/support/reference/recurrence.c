/* recurrence.c - see recurrence.h. */
#include "tests/support/reference/recurrence.h"
#include "core/rng.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double BF16 = 0x1p-8, QUICK = 0x1p-11, TINY = 0x1p-18;

static double value(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float y;

    memcpy(&y, &bits, sizeof y);
    return y;
}

/* Truncated, as any number will do. */
static uint16_t number(double x)
{
    float y = (float)x;
    uint32_t bits;

    memcpy(&bits, &y, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static const uint16_t nan_bf16 = 0xffff;

static size_t row(const recurrence *p, size_t t, size_t b, size_t r)
{
    return (t * p->B + b) * p->R + r;
}

static bool live(const recurrence *p, size_t t, size_t b)
{
    return (size_t)p->frames[b] > t;
}

arrays arrays_draw(const recurrence *p)
{
    size_t H = p->H, rows = p->T * p->B * p->R;
    arrays a = {rows * 4 * H, rows * H, p->R * 4 * H * H, 0, 0, 0, 0, 0};
    bm_rng rng = bm_rng_make(7, "test", H * 1000 + p->B);

    a.gates = zeros(a.n_gates, sizeof *a.gates);
    a.y = zeros(a.n_y, sizeof *a.y);
    a.dy = zeros(a.n_y, sizeof *a.dy);
    a.wh = zeros(a.n_wh, sizeof *a.wh);
    a.cells = zeros(a.n_y, sizeof *a.cells);
    for (size_t i = 0; i < a.n_wh; i++)
        a.wh[i] = number(2 * bm_rng_normal(&rng) / sqrt((double)H));
    for (size_t i = 0; i < a.n_gates; i++)
        a.gates[i] = number(1.5 * bm_rng_normal(&rng));
    for (size_t i = 0; i < a.n_y; i++) {
        a.dy[i] = number(bm_rng_normal(&rng));
        a.y[i] = nan_bf16;
        a.cells[i] = NAN;
    }
    for (size_t t = 0; t < p->T; t++) /* padding */
        for (size_t b = 0; b < p->B; b++)
            for (size_t i = 0; i < p->R * H && !live(p, t, b); i++) {
                for (size_t k = 0; k < 4; k++)
                    a.gates[row(p, t, b, 0) * 4 * H + 4 * i + k] = nan_bf16;
                a.dy[row(p, t, b, 0) * H + i] = nan_bf16;
            }
    return a;
}

void arrays_free(arrays *a)
{
    free(a->gates);
    free(a->y);
    free(a->dy);
    free(a->wh);
    free(a->cells);
}

static void *copy_of(const void *x, size_t bytes)
{
    void *y = zeros(bytes, 1);
    memcpy(y, x, bytes);
    return y;
}

arrays arrays_copy(const arrays *a)
{
    arrays b = *a;

    b.gates = copy_of(a->gates, a->n_gates * sizeof *a->gates);
    b.y = copy_of(a->y, a->n_y * sizeof *a->y);
    b.dy = copy_of(a->dy, a->n_y * sizeof *a->dy);
    b.wh = copy_of(a->wh, a->n_wh * sizeof *a->wh);
    b.cells = copy_of(a->cells, a->n_y * sizeof *a->cells);
    return b;
}

recurrence recurrence_with(size_t H, size_t R, size_t T, size_t B)
{
    recurrence p = {H, R, T, B, 0, {0}};
    const int32_t lengths[] = {(int32_t)T, 1, 0, (int32_t)(T + 1) / 2};

    for (size_t b = 0; b < B; b++)
        p.frames[b] = lengths[(b + B / 8) % 4];
    return p;
}

static void check(double got, double want, double bound)
{
    if (!(fabs(got - want) <= bound))
        fail_msg("%.9g instead of %.9g: the error exceeds %g", got, want,
                 bound);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* The frame before t in direction r, and the one after. */
static bool before(const recurrence *p, size_t r, size_t t, size_t b,
                   size_t *t0)
{
    *t0 = r == 0 ? t - 1 : t + 1;
    return r == 0 ? t > 0 : live(p, t + 1, b);
}

static bool after(const recurrence *p, size_t r, size_t t, size_t b, size_t *t1)
{
    return before(p, 1 - r, t, b, t1);
}

/* Cell u of sequence b at t, from a's x + wh h + b, c and h of the frame before
 * in `got`. */
static void check_cell(const recurrence *p, const arrays *a, const arrays *got,
                       size_t t, size_t b, size_t r, size_t u)
{
    size_t H = p->H, at = row(p, t, b, r), t0;
    bool first = !before(p, r, t, b, &t0);
    const uint16_t *h0 = first ? NULL : got->y + row(p, t0, b, r) * H;
    double c0 = first ? 0 : got->cells[row(p, t0, b, r) * H + u];
    double z[4], e[4], c = got->cells[at * H + u];

    for (size_t k = 0; k < 4; k++) {
        const uint16_t *wh = a->wh + ((r * 4 + k) * H + u) * H;
        double x = value(a->gates[(at * 4 + k) * H + u]), size = fabs(x);

        z[k] = x;
        for (size_t j = 0; j < H && !first; j++) {
            double term = value(wh[j]) * value(h0[j]);
            z[k] += term;
            size += fabs(term);
        }
        e[k] = (double)(H + 8) * 0x1p-23 * size;
    }
    double i = sigmoid(z[0]), f = sigmoid(z[1]), g = tanh(z[2]);
    double o = sigmoid(z[3]);
    double ei = e[0] / 4 + QUICK / 2 + TINY, ef = e[1] / 4 + TINY;
    double eg = e[2] + QUICK * fabs(g) + TINY, eo = e[3] / 4 + QUICK / 2 + TINY;
    const uint16_t *gates = got->gates + at * 4 * H + u;

    check(value(gates[0]), i, ei + BF16 * (i + ei));
    check(value(gates[H]), f, ef + BF16 * (f + ef));
    check(value(gates[2 * H]), g, eg + BF16 * (fabs(g) + eg));
    check(value(gates[3 * H]), o, eo + BF16 * (o + eo));
    check(c, f * c0 + i * g,
          ef * fabs(c0) + i * eg + ei * (fabs(g) + eg) + TINY * fabs(c) +
              1e-30);
    double h = o * tanh(c), eh = fabs(tanh(c)) * (eo + o * QUICK) + TINY;
    check(value(got->y[at * H + u]), h, eh + BF16 * (fabs(h) + eh));
}

void check_forward(const recurrence *p, const arrays *a, const arrays *got)
{
    size_t H = p->H;

    for (size_t t = 0; t < p->T; t++)
        for (size_t b = 0; b < p->B; b++)
            for (size_t i = 0; i < p->R * H; i++)
                if (live(p, t, b)) {
                    check_cell(p, a, got, t, b, i / H, i % H);
                } else {
                    check(value(got->y[row(p, t, b, 0) * H + i]), 0, 0);
                    check(got->cells[row(p, t, b, 0) * H + i], 0, 0);
                }
}

/* dy + wh' dgates of the frame after, and its bound. */
static double gradient(const recurrence *p, const arrays *a, const arrays *got,
                       size_t t, size_t b, size_t r, size_t u, double *bound)
{
    size_t H = p->H, t1;
    double sum = value(a->dy[row(p, t, b, r) * H + u]), size = fabs(sum);

    if (after(p, r, t, b, &t1))
        for (size_t k = 0; k < 4 * H; k++) {
            double term = value(a->wh[(r * 4 * H + k) * H + u]) *
                          value(got->gates[row(p, t1, b, r) * 4 * H + k]);
            sum += term;
            size += fabs(term);
        }
    *bound = (double)(4 * H + 16) * 0x1p-23 * size;
    return sum;
}

/* All frames of a cell, from gates, cells and dy in a. */
static void check_cell_back(const recurrence *p, const arrays *a,
                            const arrays *got, size_t b, size_t r, size_t u)
{
    size_t H = p->H, n = (size_t)p->frames[b], t0;
    double dc = 0, edc = 0;

    for (size_t step = 0; step < n; step++) {
        size_t t = r == 0 ? n - 1 - step : step, at = row(p, t, b, r);
        const uint16_t *gates = a->gates + at * 4 * H + u;
        const uint16_t *d = got->gates + at * 4 * H + u;
        double i = value(gates[0]), f = value(gates[H]);
        double g = value(gates[2 * H]), o = value(gates[3 * H]);
        double c = a->cells[at * H + u], out = tanh(c), edh;
        double dh = gradient(p, a, got, t, b, r, u, &edh);
        double c0 =
            before(p, r, t, b, &t0) ? a->cells[row(p, t0, b, r) * H + u] : 0;
        double inner = dh * o * (1 - out * out), own = dc + inner;
        double e = edc + edh * o + TINY * (fabs(dc) + fabs(dh) * o);
        double want[4] = {own * g * i * (1 - i), own * c0 * f * (1 - f),
                          own * i * (1 - g * g), dh * out * o * (1 - o)};
        double slack[4] = {e * fabs(g) * i * (1 - i),
                           e * fabs(c0) * f * (1 - f), e * i * (1 - g * g),
                           (edh + TINY * fabs(dh)) * o * (1 - o)};

        for (size_t k = 0; k < 4; k++)
            check(value(d[k * H]), want[k],
                  slack[k] + (BF16 + TINY) * (fabs(want[k]) + slack[k]) +
                      1e-30);
        dc = own * f;
        edc = e * f;
    }
}

void check_backward(const recurrence *p, const arrays *a, const arrays *got)
{
    size_t H = p->H;

    for (size_t b = 0; b < p->B; b++)
        for (size_t i = 0; i < p->R * H; i++)
            check_cell_back(p, a, got, b, i / H, i % H);
    for (size_t t = 0; t < p->T; t++)
        for (size_t b = 0; b < p->B; b++)
            for (size_t i = 0; i < p->R * 4 * H && !live(p, t, b); i++)
                check(value(got->gates[row(p, t, b, 0) * 4 * H + i]), 0, 0);
}
