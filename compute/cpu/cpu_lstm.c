/*
 * cpu_lstm.c - LSTM over whole sequences. What does not depend on the previous
 * frame is one product over all frames (x with wx, and backward all three
 * gradients); what does is a small product per frame, with wh packed once, and
 * a loop over the gates.
 *
 *     gates [T, B, R, 4, H]   forward: values of i, f, g, o
 *                             backward: gradients of their inputs
 *     cells [T, B, R, H]
 *
 * Past a sequence's end y and cells are zero, which are the initial values of
 * the backward direction, and gradients are zero, so that products over all
 * frames are not affected.
 *
 * Directions and sequences are independent of each other: a thread takes some
 * sequences of one direction, from the first frame to the last.
 */
#include "compute/cpu/cpu.h"

#include <string.h>

/* One direction of one layer on one batch. */
typedef struct direction {
    const bm_backend *be;
    const bm_lstm *l;
    bm_extent e;
    size_t r;
    float *gates, *cells; /* of all directions */
    float *dh, *dc;       /* [B, H] */
    float *packed;        /* room for wh */
    bm_cpu_packed_matrix wh;
    float *scratch; /* [B, 5 H]: for bm_cpu_multiply_packed */
} direction;

/* A pass over all directions, in parts: ranges of sequences of each direction.
 */
typedef struct sweep {
    direction direction[2];
    size_t runs;
    float *y;                    /* forward */
    const float *dy;             /* backward */
    _Atomic bm_status status[2]; /* of each direction */
} sweep;

enum { LINE = 64 / sizeof(float) }; /* floats in a cache line */

static size_t lines(size_t n)
{
    return (n + LINE - 1) / LINE * LINE;
}

static size_t room_for_packed(bm_backend *be, size_t H)
{
    size_t forward = bm_cpu_packed(be, H, 4 * H);
    size_t backward = bm_cpu_packed(be, 4 * H, H);

    return lines(forward > backward ? forward : backward);
}

/* Floats for one direction: packed, scratch, dh, dc. */
static size_t room_for_one(bm_backend *be, size_t H, size_t B)
{
    return room_for_packed(be, H) + lines(B * 5 * H) + 2 * lines(B * H);
}

size_t bm_cpu_lstm_kept(bm_backend *be, const bm_lstm *l, bm_extent e)
{
    size_t H = l->n_hidden;

    return LINE +
           l->directions * (e.T * e.B * 5 * H + room_for_one(be, H, e.B));
}

static sweep carve(bm_backend *be, const bm_lstm *l, bm_extent e, float *kept)
{
    size_t H = l->n_hidden, R = l->directions;
    float *at = kept + (LINE - (uintptr_t)kept / sizeof *kept % LINE) % LINE;
    float *gates = at + R * room_for_one(be, H, e.B);
    size_t threads = bm_thread_pool_threads(bm_cpu_of(be)->pool);
    sweep s = {.runs = (threads + R - 1) / R};

    for (size_t r = 0; r < R; r++) {
        direction *d = &s.direction[r];
        *d = (direction){.be = be, .l = l, .e = e, .r = r, .gates = gates};
        d->cells = gates + R * e.T * e.B * 4 * H;
        d->packed = at;
        d->scratch = d->packed + room_for_packed(be, H);
        d->dh = d->scratch + lines(e.B * 5 * H);
        d->dc = d->dh + lines(e.B * H);
        at += room_for_one(be, H, e.B);
    }
    return s;
}

/* The start of frame t of sequence b in an array with n floats per direction:
 * y, cells (H), gates (4 H). */
static size_t at(const direction *d, size_t t, size_t b, size_t n)
{
    return ((t * d->e.B + b) * d->l->directions + d->r) * n;
}

static bool active(const direction *d, size_t t, size_t b)
{
    return (size_t)d->e.frames[b] > t;
}

/* The frame of step `step` in this direction. */
static size_t frame(const direction *d, size_t step)
{
    return d->r == 0 ? step : d->e.T - 1 - step;
}

/* Narrows *first .. *end - 1 to a range that contains all its sequences that
 * have not ended at t, and no others if the batch is sorted by length. */
static void narrow(const direction *d, size_t t, size_t *first, size_t *end)
{
    while (*end > *first && !active(d, t, *end - 1))
        --*end;
    while (*first < *end && !active(d, t, *first))
        ++*first;
}

/* Sequences from .. to - 1, as in the functions below. */
static bm_status step_forward(const direction *d, size_t from, size_t to,
                              size_t step, float *y)
{
    const bm_loops *loops = bm_cpu_isa(d->be)->loops;
    size_t H = d->l->n_hidden, R = d->l->directions, first = from, end = to;
    size_t t = frame(d, step), before = step > 0 ? frame(d, step - 1) : t;
    const float *b = d->l->b + d->r * 4 * H;

    narrow(d, t, &first, &end);
    if (step > 0)
        BM_TRY(bm_cpu_multiply_packed(
            d->be, end - first, 4 * H, H, y + at(d, before, first, H), R * H,
            d->scratch + first * 5 * H, d->wh,
            d->gates + at(d, t, first, 4 * H), R * 4 * H, true));
    for (size_t i = from; i < to; i++) {
        float *c = d->cells + at(d, t, i, H), *h = y + at(d, t, i, H);
        const float *c0 = step > 0 ? d->cells + at(d, before, i, H) : NULL;

        if (active(d, t, i)) {
            loops->lstm(H, d->gates + at(d, t, i, 4 * H), b, c0, c, h);
        } else {
            memset(c, 0, H * sizeof *c);
            memset(h, 0, H * sizeof *h);
        }
    }
    return BM_OK;
}

static bm_status step_backward(const direction *d, size_t from, size_t to,
                               size_t step, const float *dy)
{
    const bm_loops *loops = bm_cpu_isa(d->be)->loops;
    size_t H = d->l->n_hidden, R = d->l->directions, T = d->e.T;
    size_t t = frame(d, step), before = step > 0 ? frame(d, step - 1) : t;
    size_t first = from, end = to;

    narrow(d, t, &first, &end);
    if (step + 1 < T)
        BM_TRY(bm_cpu_multiply_packed(
            d->be, end - first, H, 4 * H,
            d->gates + at(d, frame(d, step + 1), first, 4 * H), R * 4 * H,
            d->scratch + first * 5 * H, d->wh, d->dh + first * H, H, false));
    for (size_t i = from; i < to; i++) {
        float *gates = d->gates + at(d, t, i, 4 * H);
        const float *c0 = step > 0 ? d->cells + at(d, before, i, H) : NULL;

        if (active(d, t, i))
            loops->lstm_back(H, gates, c0, d->cells + at(d, t, i, H),
                             dy + at(d, t, i, H), d->dh + i * H, d->dc + i * H);
        else
            memset(gates, 0, 4 * H * sizeof *gates);
    }
    return BM_OK;
}

static void sweep_forward(void *self, size_t part)
{
    sweep *s = self;
    const direction *d = &s->direction[part / s->runs];
    size_t from = bm_part(d->e.B, 1, s->runs, part % s->runs);
    size_t to = bm_part(d->e.B, 1, s->runs, part % s->runs + 1);
    bm_status status = BM_OK;

    for (size_t step = 0; step < d->e.T && status == BM_OK; step++)
        status = step_forward(d, from, to, step, s->y);
    if (status != BM_OK)
        s->status[d->r] = status;
}

static void sweep_backward(void *self, size_t part)
{
    sweep *s = self;
    const direction *d = &s->direction[part / s->runs];
    size_t from = bm_part(d->e.B, 1, s->runs, part % s->runs);
    size_t to = bm_part(d->e.B, 1, s->runs, part % s->runs + 1);
    size_t H = d->l->n_hidden, n = (to - from) * H;
    bm_status status = BM_OK;

    memset(d->dh + from * H, 0, n * sizeof *d->dh);
    memset(d->dc + from * H, 0, n * sizeof *d->dc);
    for (size_t step = d->e.T; step-- > 0 && status == BM_OK;)
        status = step_backward(d, from, to, step, s->dy);
    if (status != BM_OK)
        s->status[d->r] = status;
}

static void run(bm_backend *be, sweep *s, size_t R,
                void (*part)(void *self, size_t i))
{
    bm_cpu_run(be, R * s->runs, part, s);
    for (size_t r = 0; r < R; r++)
        bm_cpu_remember(be, s->status[r]);
}

void bm_cpu_lstm_forward(bm_backend *be, const bm_lstm *l, bm_extent e,
                         const float *x, float *y, float *kept)
{
    size_t H = l->n_hidden, D = l->n_in, R = l->directions;
    sweep s = carve(be, l, e, kept);

    s.y = y;
    bm_cpu_multiply(be, e.T * e.B, R * 4 * H, D, 1,
                    (bm_factor){.x = x, .ld = D},
                    (bm_factor){.x = l->wx, .ld = D, .transposed = true}, 0,
                    s.direction[0].gates, R * 4 * H);
    for (size_t r = 0; r < R; r++)
        s.direction[r].wh = bm_cpu_pack(
            be, true, H, 4 * H, l->wh + r * 4 * H * H, s.direction[r].packed);
    run(be, &s, R, sweep_forward);
}

/* dwh = (gradients of the gates)' (h of the previous frame, zero at the first):
 * one product over all frames but one. */
static void recurrent_gradient(bm_backend *be, const direction *d, bool rounded,
                               const float *y, float *dwh)
{
    size_t H = d->l->n_hidden, R = d->l->directions, T = d->e.T, B = d->e.B;
    size_t gates = d->r == 0 ? 1 : 0, before = d->r == 0 ? 0 : 1;
    bm_factor a = {d->gates + at(d, gates, 0, 4 * H), R * 4 * H, true, rounded};
    bm_factor b = {.x = y + at(d, before, 0, H), .ld = R * H};

    bm_cpu_multiply(be, 4 * H, H, T > 0 ? (T - 1) * B : 0, 1, a, b, 0,
                    dwh + d->r * 4 * H * H, H);
}

void bm_cpu_lstm_backward(bm_backend *be, const bm_lstm *l, bm_extent e,
                          const float *x, const float *y, const float *dy,
                          float *kept, float *dx, float *dwx, float *dwh,
                          float *db)
{
    size_t H = l->n_hidden, D = l->n_in, R = l->directions;
    size_t frames = e.T * e.B, n_gates = R * 4 * H;
    sweep s = carve(be, l, e, kept);
    float *gates = s.direction[0].gates;
    bool rounded = false;

    s.dy = dy;
    for (size_t r = 0; r < R; r++)
        s.direction[r].wh = bm_cpu_pack(
            be, false, 4 * H, H, l->wh + r * 4 * H * H, s.direction[r].packed);
    run(be, &s, R, sweep_backward);
    bm_cpu_sum_rows(be, bm_matrix(gates, frames, n_gates), db);
    rounded = bm_cpu_round(be, frames * n_gates, gates);
    for (size_t r = 0; r < R; r++)
        recurrent_gradient(be, &s.direction[r], rounded, y, dwh);
    bm_cpu_multiply(be, n_gates, D, frames, 1,
                    (bm_factor){gates, n_gates, true, rounded},
                    (bm_factor){.x = x, .ld = D}, 0, dwx, D);
    if (dx != NULL)
        bm_cpu_multiply(be, frames, D, n_gates, 1,
                        (bm_factor){gates, n_gates, false, rounded},
                        (bm_factor){.x = l->wx, .ld = D}, 0, dx, D);
}
