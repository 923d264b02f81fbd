/*
 * cpu_recurrent.c - LSTM and GRU over whole sequences. What does not depend on
 * the previous frame is one product over all frames (x with wx, and backward
 * all three gradients); what does is a small product per frame, with wh packed
 * once, and a loop over the gates.
 *
 *     gates [T, B, R, 4, H]   forward: the four values of bm_recurrent
 *                             backward: gradients of their inputs
 *     cells [T, B, R, H]      c of an LSTM
 *     moved [B, 3, H]         wh h of a GRU at a frame; backward, its gradient
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
    const bm_recurrent *l;
    bm_extent e;
    size_t r;
    float *gates, *cells; /* of all directions */
    float *dh, *carried; /* [B, H]: of h by wh, of c or h from frame to frame */
    float *moved;        /* [B, 3 H]; of a GRU */
    float *packed;       /* room for wh */
    bm_cpu_packed_matrix wh;
    float *scratch; /* [B, 5 H]: for bm_cpu_multiply_packed */
} direction;

/* A pass over all directions, in parts: ranges of sequences of each direction.
 */
typedef struct sweep {
    direction direction[2];
    size_t runs;
    float *to;                   /* y, forward */
    const float *y, *dy;         /* backward */
    _Atomic bm_status status[2]; /* of each direction */
} sweep;

enum { LINE = 64 / sizeof(float) }; /* floats in a cache line */

static size_t lines(size_t n)
{
    return (n + LINE - 1) / LINE * LINE;
}

static size_t room_for_packed(bm_backend *be, const bm_recurrent *l)
{
    size_t H = l->n_hidden, rows = bm_recurrent_rows(l);
    size_t forward = bm_cpu_packed(be, H, rows);
    size_t backward = bm_cpu_packed(be, rows, H);

    return lines(forward > backward ? forward : backward);
}

static size_t room_for_moved(const bm_recurrent *l, size_t B)
{
    return l->cell == BM_GRU ? lines(B * 3 * l->n_hidden) : 0;
}

/* Floats for one direction: packed, scratch, dh, carried, moved. */
static size_t room_for_one(bm_backend *be, const bm_recurrent *l, size_t B)
{
    size_t H = l->n_hidden;

    return room_for_packed(be, l) + lines(B * 5 * H) + 2 * lines(B * H) +
           room_for_moved(l, B);
}

/* Floats of gates and cells, for each frame of each direction. */
static size_t values(const bm_recurrent *l)
{
    return (l->cell == BM_LSTM ? BM_CELL_VALUES + 1 : BM_CELL_VALUES) *
           l->n_hidden;
}

size_t bm_cpu_recurrent_kept(bm_backend *be, const bm_recurrent *l, bm_extent e)
{
    return LINE +
           l->directions * (e.T * e.B * values(l) + room_for_one(be, l, e.B));
}

static sweep carve(bm_backend *be, const bm_recurrent *l, bm_extent e,
                   float *kept)
{
    size_t H = l->n_hidden, R = l->directions, one = room_for_one(be, l, e.B);
    float *at = kept + (LINE - (uintptr_t)kept / sizeof *kept % LINE) % LINE;
    float *gates = at + R * one;
    size_t threads = bm_thread_pool_threads(bm_cpu_of(be)->pool);
    sweep s = {.runs = (threads + R - 1) / R};

    for (size_t r = 0; r < R; r++) {
        direction *d = &s.direction[r];
        *d = (direction){.be = be, .l = l, .e = e, .r = r, .gates = gates};
        d->cells = gates + R * e.T * e.B * 4 * H;
        d->packed = at;
        d->scratch = d->packed + room_for_packed(be, l);
        d->dh = d->scratch + lines(e.B * 5 * H);
        d->carried = d->dh + lines(e.B * H);
        d->moved = d->carried + lines(e.B * H);
        at += one;
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

/* One frame of sequence i; `before` is the frame before it at step > 0. */
static void cell_forward(const direction *d, size_t t, size_t before,
                         size_t step, size_t i, float *y)
{
    const bm_loops *loops = bm_cpu_isa(d->be)->loops;
    size_t H = d->l->n_hidden;
    float *gates = d->gates + at(d, t, i, 4 * H), *h = y + at(d, t, i, H);
    const float *b = d->l->b + d->r * 4 * H;

    if (d->l->cell == BM_LSTM)
        loops->lstm(H, gates, b,
                    step > 0 ? d->cells + at(d, before, i, H) : NULL,
                    d->cells + at(d, t, i, H), h);
    else
        loops->gru(H, gates, d->moved + i * 3 * H, b,
                   step > 0 ? y + at(d, before, i, H) : NULL, h);
}

/* wh h of sequences first .. end - 1: added to the gates of an LSTM. */
static bm_status multiply_forward(const direction *d, size_t first, size_t end,
                                  size_t t, size_t before, const float *y)
{
    size_t H = d->l->n_hidden, R = d->l->directions;
    bool adds = d->l->cell == BM_LSTM;
    float *to =
        adds ? d->gates + at(d, t, first, 4 * H) : d->moved + first * 3 * H;

    return bm_cpu_multiply_packed(d->be, end - first, bm_recurrent_rows(d->l),
                                  H, y + at(d, before, first, H), R * H,
                                  d->scratch + first * 5 * H, d->wh, to,
                                  adds ? R * 4 * H : 3 * H, adds);
}

/* Sequences from .. to - 1, as in the functions below. */
static bm_status step_forward(const direction *d, size_t from, size_t to,
                              size_t step, float *y)
{
    size_t H = d->l->n_hidden, first = from, end = to;
    size_t t = frame(d, step), before = step > 0 ? frame(d, step - 1) : t;

    narrow(d, t, &first, &end);
    if (step > 0)
        BM_TRY(multiply_forward(d, first, end, t, before, y));
    for (size_t i = from; i < to; i++) {
        if (active(d, t, i)) {
            cell_forward(d, t, before, step, i, y);
            continue;
        }
        memset(y + at(d, t, i, H), 0, H * sizeof *y);
        if (d->l->cell == BM_LSTM)
            memset(d->cells + at(d, t, i, H), 0, H * sizeof *d->cells);
    }
    return BM_OK;
}

static void cell_backward(const direction *d, size_t t, size_t before,
                          size_t step, size_t i, const float *y,
                          const float *dy)
{
    const bm_loops *loops = bm_cpu_isa(d->be)->loops;
    size_t H = d->l->n_hidden;
    float *gates = d->gates + at(d, t, i, 4 * H);

    dy += at(d, t, i, H);
    if (d->l->cell == BM_LSTM)
        loops->lstm_back(
            H, gates, step > 0 ? d->cells + at(d, before, i, H) : NULL,
            d->cells + at(d, t, i, H), dy, d->dh + i * H, d->carried + i * H);
    else
        loops->gru_back(H, gates, step > 0 ? y + at(d, before, i, H) : NULL, dy,
                        d->dh + i * H, d->carried + i * H,
                        d->moved + i * 3 * H);
}

/* dh from the frame after, `after`. */
static bm_status multiply_backward(const direction *d, size_t first, size_t end,
                                   size_t after)
{
    size_t H = d->l->n_hidden, R = d->l->directions;
    bool lstm = d->l->cell == BM_LSTM;

    return bm_cpu_multiply_packed(
        d->be, end - first, H, bm_recurrent_rows(d->l),
        lstm ? d->gates + at(d, after, first, 4 * H) : d->moved + first * 3 * H,
        lstm ? R * 4 * H : 3 * H, d->scratch + first * 5 * H, d->wh,
        d->dh + first * H, H, false);
}

static bm_status step_backward(const direction *d, size_t from, size_t to,
                               size_t step, const float *y, const float *dy)
{
    size_t H = d->l->n_hidden, first = from, end = to;
    size_t t = frame(d, step), before = step > 0 ? frame(d, step - 1) : t;

    narrow(d, t, &first, &end);
    if (step + 1 < d->e.T)
        BM_TRY(multiply_backward(d, first, end, frame(d, step + 1)));
    for (size_t i = from; i < to; i++) {
        float *gates = d->gates + at(d, t, i, 4 * H);

        if (active(d, t, i))
            cell_backward(d, t, before, step, i, y, dy);
        else
            memset(gates, 0, 4 * H * sizeof *gates);
    }
    return BM_OK;
}

/* The state of sequences from .. to - 1 in front of the first step. */
static void clear(const direction *d, size_t from, size_t to)
{
    size_t H = d->l->n_hidden, n = (to - from) * H;

    memset(d->dh + from * H, 0, n * sizeof *d->dh);
    memset(d->carried + from * H, 0, n * sizeof *d->carried);
    if (d->l->cell == BM_GRU)
        memset(d->moved + from * 3 * H, 0, 3 * n * sizeof *d->moved);
}

static void sweep_forward(void *self, size_t part)
{
    sweep *s = self;
    const direction *d = &s->direction[part / s->runs];
    size_t from = bm_part(d->e.B, 1, s->runs, part % s->runs);
    size_t to = bm_part(d->e.B, 1, s->runs, part % s->runs + 1);
    bm_status status = BM_OK;

    clear(d, from, to);
    for (size_t step = 0; step < d->e.T && status == BM_OK; step++)
        status = step_forward(d, from, to, step, s->to);
    if (status != BM_OK)
        s->status[d->r] = status;
}

static void sweep_backward(void *self, size_t part)
{
    sweep *s = self;
    const direction *d = &s->direction[part / s->runs];
    size_t from = bm_part(d->e.B, 1, s->runs, part % s->runs);
    size_t to = bm_part(d->e.B, 1, s->runs, part % s->runs + 1);
    bm_status status = BM_OK;

    clear(d, from, to);
    for (size_t step = d->e.T; step-- > 0 && status == BM_OK;)
        status = step_backward(d, from, to, step, s->y, s->dy);
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

/* Products with x: of both directions of an LSTM, whose gates lie side by side,
 * in one; else of each direction. `rows` of wx each. */
typedef struct pieces {
    size_t n, rows;
} pieces;

static pieces pieces_of(const bm_recurrent *l)
{
    size_t rows = bm_recurrent_rows(l), R = l->directions;

    return l->cell == BM_LSTM ? (pieces){1, R * rows} : (pieces){R, rows};
}

void bm_cpu_recurrent_forward(bm_backend *be, const bm_recurrent *l,
                              bm_extent e, const float *x, float *y,
                              float *kept)
{
    size_t H = l->n_hidden, D = l->n_in, R = l->directions;
    size_t rows = bm_recurrent_rows(l);
    pieces of = pieces_of(l);
    sweep s = carve(be, l, e, kept);

    s.to = y;
    for (size_t k = 0; k < of.n; k++)
        bm_cpu_multiply(
            be, e.T * e.B, of.rows, D, 1, (bm_factor){.x = x, .ld = D},
            (bm_factor){
                .x = l->wx + k * of.rows * D, .ld = D, .transposed = true},
            0, s.direction[k].gates + k * 4 * H, R * 4 * H);
    for (size_t r = 0; r < R; r++)
        s.direction[r].wh = bm_cpu_pack(be, true, H, rows, l->wh + r * rows * H,
                                        s.direction[r].packed);
    run(be, &s, R, sweep_forward);
}

/* dwh = (gradients of wh h)' (h of the previous frame, zero at the first), one
 * product over all frames but one: of `rows` rows of wh from `row` on, whose
 * gradients are the values from `value` on. */
static void recurrent_rows(bm_backend *be, const direction *d, bool rounded,
                           const float *y, size_t row, size_t rows,
                           size_t value, float *dwh)
{
    size_t H = d->l->n_hidden, R = d->l->directions, T = d->e.T, B = d->e.B;
    size_t gates = d->r == 0 ? 1 : 0, before = d->r == 0 ? 0 : 1;
    bm_factor a = {d->gates + at(d, gates, 0, 4 * H) + value, R * 4 * H, true,
                   rounded};
    bm_factor b = {.x = y + at(d, before, 0, H), .ld = R * H};

    bm_cpu_multiply(be, rows, H, T > 0 ? (T - 1) * B : 0, 1, a, b, 0,
                    dwh + (d->r * bm_recurrent_rows(d->l) + row) * H, H);
}

static void recurrent_gradient(bm_backend *be, const direction *d, bool rounded,
                               const float *y, float *dwh)
{
    size_t H = d->l->n_hidden;

    if (d->l->cell == BM_LSTM) {
        recurrent_rows(be, d, rounded, y, 0, 4 * H, 0, dwh);
        return;
    }
    recurrent_rows(be, d, rounded, y, 0, 2 * H, 0, dwh);
    recurrent_rows(be, d, rounded, y, 2 * H, H, 3 * H, dwh);
}

/* dwx, and dx unless NULL, from the gradients of the gates. */
static void input_gradients(bm_backend *be, const bm_recurrent *l,
                            const float *gates, bool rounded, size_t frames,
                            const float *x, float *dx, float *dwx)
{
    size_t H = l->n_hidden, D = l->n_in, ld = l->directions * 4 * H;
    pieces of = pieces_of(l);

    for (size_t k = 0; k < of.n; k++) {
        const float *from = gates + k * 4 * H;
        size_t at = k * of.rows * D;

        bm_cpu_multiply(be, of.rows, D, frames, 1,
                        (bm_factor){from, ld, true, rounded},
                        (bm_factor){.x = x, .ld = D}, 0, dwx + at, D);
        if (dx != NULL)
            bm_cpu_multiply(be, frames, D, of.rows, 1,
                            (bm_factor){from, ld, false, rounded},
                            (bm_factor){.x = l->wx + at, .ld = D},
                            k > 0 ? 1 : 0, dx, D);
    }
}

void bm_cpu_recurrent_backward(bm_backend *be, const bm_recurrent *l,
                               bm_extent e, const float *x, const float *y,
                               const float *dy, float *kept, float *dx,
                               float *dwx, float *dwh, float *db)
{
    size_t H = l->n_hidden, R = l->directions, rows = bm_recurrent_rows(l);
    size_t frames = e.T * e.B;
    sweep s = carve(be, l, e, kept);
    float *gates = s.direction[0].gates;
    bool rounded = false;

    s.y = y;
    s.dy = dy;
    for (size_t r = 0; r < R; r++)
        s.direction[r].wh = bm_cpu_pack(
            be, false, rows, H, l->wh + r * rows * H, s.direction[r].packed);
    run(be, &s, R, sweep_backward);
    bm_cpu_sum_rows(be, bm_matrix(gates, frames, R * 4 * H), db);
    rounded = bm_cpu_round(be, frames * R * 4 * H, gates);
    for (size_t r = 0; r < R; r++)
        recurrent_gradient(be, &s.direction[r], rounded, y, dwh);
    input_gradients(be, l, gates, rounded, frames, x, dx, dwx);
}
