/*
 * cpu_lstm.c - LSTM over whole sequences. What does not depend on the frame
 * before is one product over all frames (of x with wx, and backward all three
 * gradients); what does is a small product per frame, with wh packed once, and
 * a loop over the gates.
 *
 *     gates [T, B, R, 4, H]   forward: values of i, f, g, o
 *                             backward: gradients of what went into them
 *     cells [T, B, R, H]
 *
 * A sequence that has ended leaves zeros in y and cells, so that the direction
 * which runs backwards finds its beginning there, and zeros in the gradients,
 * so that no product over all frames sees it.
 */
#include "compute/cpu.h"

#include <cblas.h>
#include <string.h>

/* One direction of one layer on one batch. */
typedef struct direction {
    const bm_lstm *l;
    bm_extent e;
    const bm_isa *isa;
    size_t r;
    float *gates, *cells; /* of all directions */
    float *dh, *dc;       /* [B, H] */
    float *packed;        /* wh of this direction */
} direction;

enum { LINE = 64 / sizeof(float) }; /* floats in a cache line */

static size_t room_for_packed(size_t H)
{
    size_t forward = bm_packed(H, 4 * H), backward = bm_packed(4 * H, H);
    return forward > backward ? forward : backward;
}

size_t bm_cpu_lstm_kept(bm_backend *be, const bm_lstm *l, bm_extent e)
{
    size_t H = l->n_hidden;

    (void)be;
    return e.T * e.B * l->directions * 5 * H + 2 * e.B * H +
           room_for_packed(H) + LINE;
}

static direction carve(bm_backend *be, const bm_lstm *l, bm_extent e, size_t r,
                       float *kept)
{
    size_t H = l->n_hidden, frames = e.T * e.B * l->directions;
    direction d = {.l = l, .e = e, .isa = bm_cpu_isa(be), .r = r};

    d.packed = kept + (LINE - (uintptr_t)kept / sizeof *kept % LINE) % LINE;
    d.gates = d.packed + room_for_packed(H);
    d.cells = d.gates + frames * 4 * H;
    d.dh = d.cells + frames * H;
    d.dc = d.dh + e.B * H;
    return d;
}

/* Where frame t of sequence b begins in an array with n floats per direction:
 * y, cells (H), gates (4 H). */
static size_t at(const direction *d, size_t t, size_t b, size_t n)
{
    return ((t * d->e.B + b) * d->l->directions + d->r) * n;
}

static bool active(const direction *d, size_t t, size_t b)
{
    return (size_t)d->e.frames[b] > t;
}

/* Frame number `step` in this direction's order. */
static size_t frame(const direction *d, size_t step)
{
    return d->r == 0 ? step : d->e.T - 1 - step;
}

/* The sequences that have not ended at t lie in first .. end - 1. If batches
 * are sorted by length, all of these have not. */
static void span(const direction *d, size_t t, size_t *first, size_t *end)
{
    *first = 0;
    *end = d->e.B;
    while (*end > 0 && !active(d, t, *end - 1))
        --*end;
    while (*first < *end && !active(d, t, *first))
        ++*first;
}

static void step_forward(const direction *d, size_t step, float *y)
{
    size_t H = d->l->n_hidden, R = d->l->directions, first, end;
    size_t t = frame(d, step), before = step > 0 ? frame(d, step - 1) : t;
    const float *b = d->l->b + d->r * 4 * H;

    span(d, t, &first, &end);
    if (step > 0)
        d->isa->product->multiply(
            end - first, 4 * H, H, y + at(d, before, first, H), R * H,
            d->packed, d->gates + at(d, t, first, 4 * H), R * 4 * H, true);
    for (size_t i = 0; i < d->e.B; i++) {
        float *c = d->cells + at(d, t, i, H), *h = y + at(d, t, i, H);
        const float *c0 = step > 0 ? d->cells + at(d, before, i, H) : NULL;

        if (active(d, t, i)) {
            d->isa->loops->lstm(H, d->gates + at(d, t, i, 4 * H), b, c0, c, h);
        } else {
            memset(c, 0, H * sizeof *c);
            memset(h, 0, H * sizeof *h);
        }
    }
}

void bm_cpu_lstm_forward(bm_backend *be, const bm_lstm *l, bm_extent e,
                         const float *x, float *y, float *kept)
{
    size_t H = l->n_hidden, D = l->n_in, R = l->directions;
    direction d = carve(be, l, e, 0, kept);

    if (e.T * e.B == 0)
        return;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)(e.T * e.B),
                (int)(R * 4 * H), (int)D, 1, x, (int)D, l->wx, (int)D, 0,
                d.gates, (int)(R * 4 * H));
    for (d.r = 0; d.r < R; d.r++) {
        d.isa->product->pack(true, H, 4 * H, l->wh + d.r * 4 * H * H, d.packed);
        for (size_t step = 0; step < e.T; step++)
            step_forward(&d, step, y);
    }
}

static void step_backward(const direction *d, size_t step, const float *dy)
{
    size_t H = d->l->n_hidden, R = d->l->directions, T = d->e.T, first, end;
    size_t t = frame(d, step), before = step > 0 ? frame(d, step - 1) : t;

    span(d, t, &first, &end);
    if (step + 1 < T)
        d->isa->product->multiply(
            end - first, H, 4 * H,
            d->gates + at(d, frame(d, step + 1), first, 4 * H), R * 4 * H,
            d->packed, d->dh + first * H, H, false);
    for (size_t i = 0; i < d->e.B; i++) {
        float *gates = d->gates + at(d, t, i, 4 * H);
        const float *c0 = step > 0 ? d->cells + at(d, before, i, H) : NULL;

        if (active(d, t, i))
            d->isa->loops->lstm_back(H, gates, c0, d->cells + at(d, t, i, H),
                                     dy + at(d, t, i, H), d->dh + i * H,
                                     d->dc + i * H);
        else
            memset(gates, 0, 4 * H * sizeof *gates);
    }
}

/* dwh += (gradients of the gates)' (h of the frame before, which is zero at the
 * first): one product over all frames but one. */
static void recurrent_gradient(const direction *d, const float *y, float *dwh)
{
    size_t H = d->l->n_hidden, R = d->l->directions, B = d->e.B;
    size_t gates = d->r == 0 ? 1 : 0, before = d->r == 0 ? 0 : 1;

    if (d->e.T > 1)
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)(4 * H),
                    (int)H, (int)((d->e.T - 1) * B), 1,
                    d->gates + at(d, gates, 0, 4 * H), (int)(R * 4 * H),
                    y + at(d, before, 0, H), (int)(R * H), 1,
                    dwh + d->r * 4 * H * H, (int)H);
}

void bm_cpu_lstm_backward(bm_backend *be, const bm_lstm *l, bm_extent e,
                          const float *x, const float *y, const float *dy,
                          float *kept, float *dx, float *dwx, float *dwh,
                          float *db)
{
    size_t H = l->n_hidden, D = l->n_in, R = l->directions;
    int frames = (int)(e.T * e.B), n_gates = (int)(R * 4 * H);
    direction d = carve(be, l, e, 0, kept);

    if (frames == 0)
        return;
    for (d.r = 0; d.r < R; d.r++) {
        d.isa->product->pack(false, 4 * H, H, l->wh + d.r * 4 * H * H,
                             d.packed);
        memset(d.dh, 0, 2 * e.B * H * sizeof *d.dh); /* and dc */
        for (size_t step = e.T; step-- > 0;)
            step_backward(&d, step, dy);
        recurrent_gradient(&d, y, dwh);
    }
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n_gates, (int)D,
                frames, 1, d.gates, n_gates, x, (int)D, 1, dwx, (int)D);
    bm_cpu_sum_rows(be, bm_matrix(d.gates, e.T * e.B, R * 4 * H), db);
    if (dx != NULL)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, frames, (int)D,
                    n_gates, 1, d.gates, n_gates, l->wx, (int)D, 0, dx, (int)D);
}
