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
 *     hidden [T, B, R, H]     h, where y is a projection of it
 *     down [T, B, R, P]       the gradient of that y, from above and by wh
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
    float *dh;            /* [B, Y]: of y by wh */
    float *carried;       /* [B, H]: of c or h, from frame to frame */
    float *moved;         /* [B, 3 H]; of a GRU */
    float *packed;        /* room for wh */
    bm_cpu_packed_matrix wh;
    float *scratch;       /* [B, 5 H]: for bm_cpu_multiply_packed */
    float *hidden, *down; /* of all directions; with a projection, as below */
    float *packed_wr;
    bm_cpu_packed_matrix wr;
    float *dhidden, *zeros; /* [B, H]; [H] */
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

/* For m [k, n] or its transpose. */
static size_t room_for_packed(bm_backend *be, size_t k, size_t n)
{
    size_t forward = bm_cpu_packed(be, k, n);
    size_t backward = bm_cpu_packed(be, n, k);

    return lines(forward > backward ? forward : backward);
}

static size_t room_for_wh(bm_backend *be, const bm_recurrent *l)
{
    return room_for_packed(be, bm_recurrent_width(l), bm_recurrent_rows(l));
}

static size_t room_for_projection(bm_backend *be, const bm_recurrent *l,
                                  size_t B)
{
    size_t H = l->n_hidden, P = l->n_projected;

    return P > 0 ? room_for_packed(be, H, P) + lines(B * H) + lines(H) : 0;
}

static size_t room_for_moved(const bm_recurrent *l, size_t B)
{
    return l->cell == BM_GRU ? lines(B * 3 * l->n_hidden) : 0;
}

/* Floats for one direction: packed, scratch, dh, carried, moved, and those of a
 * projection. */
static size_t room_for_one(bm_backend *be, const bm_recurrent *l, size_t B)
{
    size_t H = l->n_hidden;

    return room_for_wh(be, l) + lines(B * 5 * H) + 2 * lines(B * H) +
           room_for_moved(l, B) + room_for_projection(be, l, B);
}

/* Floats of gates, cells, hidden and down, for each frame of each direction. */
static size_t values(const bm_recurrent *l)
{
    size_t n = l->cell == BM_LSTM ? BM_CELL_VALUES + 1 : BM_CELL_VALUES;

    return (l->n_projected > 0 ? n + 1 : n) * l->n_hidden + l->n_projected;
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
    size_t n = R * e.T * e.B * H;
    float *at = kept + (LINE - (uintptr_t)kept / sizeof *kept % LINE) % LINE;
    float *gates = at + R * one;
    size_t threads = bm_thread_pool_threads(bm_cpu_of(be)->pool);
    sweep s = {.runs = (threads + R - 1) / R};

    for (size_t r = 0; r < R; r++) {
        direction *d = &s.direction[r];
        *d = (direction){.be = be, .l = l, .e = e, .r = r, .gates = gates};
        d->cells = gates + 4 * n;
        d->hidden = gates + 5 * n;
        d->down = gates + 6 * n;
        d->packed = at;
        d->scratch = d->packed + room_for_wh(be, l);
        d->dh = d->scratch + lines(e.B * 5 * H);
        d->carried = d->dh + lines(e.B * H);
        d->moved = d->carried + lines(e.B * H);
        d->dhidden = d->moved + room_for_moved(l, e.B);
        d->zeros = d->dhidden + lines(e.B * H);
        d->packed_wr = d->zeros + lines(H);
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

/* Where h of a frame goes. */
static float *h_of(const direction *d, size_t t, size_t i, float *y)
{
    return (d->l->n_projected > 0 ? d->hidden : y) +
           at(d, t, i, d->l->n_hidden);
}

/* One frame of sequence i; `before` is the frame before it at step > 0. */
static void cell_forward(const direction *d, size_t t, size_t before,
                         size_t step, size_t i, float *y)
{
    const bm_loops *loops = bm_cpu_isa(d->be)->loops;
    size_t H = d->l->n_hidden;
    float *gates = d->gates + at(d, t, i, 4 * H), *h = h_of(d, t, i, y);
    const float *b = d->l->b + d->r * 4 * H;

    if (d->l->cell == BM_LSTM)
        loops->lstm(H, gates, b,
                    step > 0 ? d->cells + at(d, before, i, H) : NULL,
                    d->cells + at(d, t, i, H), h);
    else
        loops->gru(H, gates, d->moved + i * 3 * H, b,
                   step > 0 ? y + at(d, before, i, H) : NULL, h);
}

/* wh y of sequences first .. end - 1: added to the gates of an LSTM. */
static bm_status multiply_forward(const direction *d, size_t first, size_t end,
                                  size_t t, size_t before, const float *y)
{
    size_t H = d->l->n_hidden, R = d->l->directions;
    size_t Y = bm_recurrent_width(d->l);
    bool adds = d->l->cell == BM_LSTM;
    float *to =
        adds ? d->gates + at(d, t, first, 4 * H) : d->moved + first * 3 * H;

    return bm_cpu_multiply_packed(d->be, end - first, bm_recurrent_rows(d->l),
                                  Y, y + at(d, before, first, Y), R * Y,
                                  d->scratch + first * 5 * H, d->wh, to,
                                  adds ? R * 4 * H : 3 * H, adds);
}

/* y = wr h. */
static bm_status project(const direction *d, size_t first, size_t end, size_t t,
                         float *y)
{
    size_t H = d->l->n_hidden, P = d->l->n_projected, R = d->l->directions;

    return bm_cpu_multiply_packed(d->be, end - first, P, H,
                                  d->hidden + at(d, t, first, H), R * H,
                                  d->scratch + first * 5 * H, d->wr,
                                  y + at(d, t, first, P), R * P, false);
}

/* Sequences from .. to - 1, as in the functions below. */
static bm_status step_forward(const direction *d, size_t from, size_t to,
                              size_t step, float *y)
{
    size_t H = d->l->n_hidden, Y = bm_recurrent_width(d->l);
    size_t first = from, end = to, t = frame(d, step);
    size_t before = step > 0 ? frame(d, step - 1) : t;

    narrow(d, t, &first, &end);
    if (step > 0)
        BM_TRY(multiply_forward(d, first, end, t, before, y));
    for (size_t i = from; i < to; i++) {
        if (active(d, t, i)) {
            cell_forward(d, t, before, step, i, y);
            continue;
        }
        memset(h_of(d, t, i, y), 0, H * sizeof *y);
        if (d->l->cell == BM_LSTM)
            memset(d->cells + at(d, t, i, H), 0, H * sizeof *d->cells);
    }
    if (d->l->n_projected == 0)
        return BM_OK;
    BM_TRY(project(d, first, end, t, y));
    for (size_t i = from; i < to; i++)
        if (!active(d, t, i))
            memset(y + at(d, t, i, Y), 0, Y * sizeof *y);
    return BM_OK;
}

static void cell_backward(const direction *d, size_t t, size_t before,
                          size_t step, size_t i, const float *y,
                          const float *dy)
{
    const bm_loops *loops = bm_cpu_isa(d->be)->loops;
    size_t H = d->l->n_hidden;
    bool projects = d->l->n_projected > 0;
    float *gates = d->gates + at(d, t, i, 4 * H);
    const float *above = projects ? d->dhidden + i * H : dy + at(d, t, i, H);

    if (d->l->cell == BM_LSTM)
        loops->lstm_back(
            H, gates, step > 0 ? d->cells + at(d, before, i, H) : NULL,
            d->cells + at(d, t, i, H), above,
            projects ? d->zeros : d->dh + i * H, d->carried + i * H);
    else
        loops->gru_back(H, gates, step > 0 ? y + at(d, before, i, H) : NULL,
                        above, d->dh + i * H, d->carried + i * H,
                        d->moved + i * 3 * H);
}

/* dh from the frame after, `after`. */
static bm_status multiply_backward(const direction *d, size_t first, size_t end,
                                   size_t after)
{
    size_t H = d->l->n_hidden, R = d->l->directions;
    size_t Y = bm_recurrent_width(d->l);
    bool lstm = d->l->cell == BM_LSTM;

    return bm_cpu_multiply_packed(
        d->be, end - first, Y, bm_recurrent_rows(d->l),
        lstm ? d->gates + at(d, after, first, 4 * H) : d->moved + first * 3 * H,
        lstm ? R * 4 * H : 3 * H, d->scratch + first * 5 * H, d->wh,
        d->dh + first * Y, Y, false);
}

/* down = dy + dh, and dhidden = wr' down. */
static bm_status project_back(const direction *d, size_t from, size_t to,
                              size_t first, size_t end, size_t t,
                              const float *dy)
{
    size_t H = d->l->n_hidden, P = d->l->n_projected, R = d->l->directions;

    for (size_t i = from; i < to; i++) {
        float *down = d->down + at(d, t, i, P);

        if (!active(d, t, i))
            memset(down, 0, P * sizeof *down);
        for (size_t k = 0; k < P && active(d, t, i); k++)
            down[k] = dy[at(d, t, i, P) + k] + d->dh[i * P + k];
    }
    return bm_cpu_multiply_packed(
        d->be, end - first, H, P, d->down + at(d, t, first, P), R * P,
        d->scratch + first * 5 * H, d->wr, d->dhidden + first * H, H, false);
}

static bm_status step_backward(const direction *d, size_t from, size_t to,
                               size_t step, const float *y, const float *dy)
{
    size_t H = d->l->n_hidden, first = from, end = to;
    size_t t = frame(d, step), before = step > 0 ? frame(d, step - 1) : t;

    narrow(d, t, &first, &end);
    if (step + 1 < d->e.T)
        BM_TRY(multiply_backward(d, first, end, frame(d, step + 1)));
    if (d->l->n_projected > 0)
        BM_TRY(project_back(d, from, to, first, end, t, dy));
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
    size_t Y = bm_recurrent_width(d->l);

    memset(d->dh + from * Y, 0, (to - from) * Y * sizeof *d->dh);
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
    size_t rows = bm_recurrent_rows(l), Y = bm_recurrent_width(l);
    pieces of = pieces_of(l);
    sweep s = carve(be, l, e, kept);

    s.to = y;
    for (size_t k = 0; k < of.n; k++)
        bm_cpu_multiply(
            be, e.T * e.B, of.rows, D, 1, (bm_factor){.x = x, .ld = D},
            (bm_factor){
                .x = l->wx + k * of.rows * D, .ld = D, .transposed = true},
            0, s.direction[k].gates + k * 4 * H, R * 4 * H);
    for (size_t r = 0; r < R; r++) {
        direction *d = &s.direction[r];

        d->wh = bm_cpu_pack(be, true, Y, rows, l->wh + r * rows * Y, d->packed);
        if (l->n_projected > 0)
            d->wr =
                bm_cpu_pack(be, true, H, Y, l->wr + r * Y * H, d->packed_wr);
    }
    run(be, &s, R, sweep_forward);
}

/* dwh = (gradients of wh y)' (y of the previous frame, zero at the first), one
 * product over all frames but one: of `rows` rows of wh from `row` on, whose
 * gradients are the values from `value` on. */
static void recurrent_rows(bm_backend *be, const direction *d, bool rounded,
                           const float *y, size_t row, size_t rows,
                           size_t value, float *dwh)
{
    size_t H = d->l->n_hidden, R = d->l->directions, T = d->e.T, B = d->e.B;
    size_t gates = d->r == 0 ? 1 : 0, before = d->r == 0 ? 0 : 1;
    size_t Y = bm_recurrent_width(d->l);
    bm_factor a = {d->gates + at(d, gates, 0, 4 * H) + value, R * 4 * H, true,
                   rounded};
    bm_factor b = {.x = y + at(d, before, 0, Y), .ld = R * Y};

    bm_cpu_multiply(be, rows, Y, T > 0 ? (T - 1) * B : 0, 1, a, b, 0,
                    dwh + (d->r * bm_recurrent_rows(d->l) + row) * Y, Y);
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

/* dwr = down' hidden, over all frames. */
static void projection_gradient(bm_backend *be, const direction *d, float *dwr)
{
    size_t H = d->l->n_hidden, P = d->l->n_projected, R = d->l->directions;

    bm_cpu_multiply(
        be, P, H, d->e.T * d->e.B, 1,
        (bm_factor){.x = d->down + d->r * P, .ld = R * P, .transposed = true},
        (bm_factor){.x = d->hidden + d->r * H, .ld = R * H}, 0,
        dwr + d->r * P * H, H);
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
                               float *dwx, float *dwh, float *db, float *dwr)
{
    size_t H = l->n_hidden, R = l->directions, rows = bm_recurrent_rows(l);
    size_t frames = e.T * e.B, Y = bm_recurrent_width(l);
    sweep s = carve(be, l, e, kept);
    float *gates = s.direction[0].gates;
    bool rounded = false;

    s.y = y;
    s.dy = dy;
    for (size_t r = 0; r < R; r++) {
        direction *d = &s.direction[r];

        d->wh =
            bm_cpu_pack(be, false, rows, Y, l->wh + r * rows * Y, d->packed);
        if (l->n_projected == 0)
            continue;
        d->wr = bm_cpu_pack(be, false, Y, H, l->wr + r * Y * H, d->packed_wr);
        memset(d->zeros, 0, H * sizeof *d->zeros);
    }
    run(be, &s, R, sweep_backward);
    bm_cpu_sum_rows(be, bm_matrix(gates, frames, R * 4 * H), db);
    rounded = bm_cpu_round(be, frames * R * 4 * H, gates);
    for (size_t r = 0; r < R; r++) {
        recurrent_gradient(be, &s.direction[r], rounded, y, dwh);
        if (l->n_projected > 0)
            projection_gradient(be, &s.direction[r], dwr);
    }
    input_gradients(be, l, gates, rounded, frames, x, dx, dwx);
}
