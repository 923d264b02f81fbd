/*
 * cuda_lstm_around.c - an LSTM or a GRU but for its recurrence: what does not
 * depend on the frame before is one product over all frames, of an LSTM also
 * over both directions, whose gates lie side by side.
 *
 *     gates [T, B, R, 4, H]   forward: wx x (and b of an LSTM), then i, f, g, o,
 *                             or r, z, n, q
 *                             backward: gradients of what went into them
 *     cells [T, B, R, H]      floats: c of an LSTM, h of a GRU
 *     hidden [T, B, R, H]     h, where y is a projection of it
 *     down [T, B, R, P]       the gradient of that y, from above and by wh
 *
 * With bf16, gates, y and dx are bf16 only. Gradients of weights are computed
 * on `side`, beside the recurrence of the layer below.
 */
#include "compute/cuda/device/cuda_side.h"
#include "compute/cuda/libraries/cuda_products.h"
#include "compute/cuda/lstm/cuda_lstm.h"
#include "compute/cuda/memory/cuda_ring.h"

enum { LINE = 256 / sizeof(float) }; /* alignment, in floats */

static size_t lines(size_t n)
{
    return (n + LINE - 1) / LINE * LINE;
}

/* The room of n S for each frame of each direction, in floats, whole lines. */
static size_t room(bm_backend *be, const bm_recurrent *l, bm_extent e, size_t n)
{
    n *= e.T * e.B * l->directions;
    return lines(bm_lstm_in_bf16(be) ? (n + 1) / 2 : n);
}

static size_t room_for_gates(bm_backend *be, const bm_recurrent *l, bm_extent e)
{
    return room(be, l, e, 4 * l->n_hidden);
}

static size_t room_for_cells(const bm_recurrent *l, bm_extent e)
{
    return lines(e.T * e.B * l->directions * l->n_hidden);
}

size_t bm_lstm_around_kept(bm_backend *be, const bm_recurrent *l, bm_extent e)
{
    size_t n = LINE + room_for_gates(be, l, e) + room_for_cells(l, e);

    if (l->n_projected > 0)
        n += room(be, l, e, l->n_hidden) + room(be, l, e, l->n_projected);
    return n;
}

static bm_cuda_type type(bm_backend *be)
{
    return bm_lstm_in_bf16(be) ? BM_CUDA_BF16 : BM_CUDA_F32;
}

static bm_cuda_factor factor(bm_backend *be, const void *x, size_t ld,
                             bool transposed)
{
    return (bm_cuda_factor){x, type(be), ld, transposed};
}

static bm_lstm_sweep sweep_of(bm_backend *be, const bm_recurrent *l,
                              bm_extent e, float *kept)
{
    size_t H = l->n_hidden, R = l->directions, rows = bm_recurrent_rows(l);
    float *at = kept + (LINE - (uintptr_t)kept / sizeof *kept % LINE) % LINE;
    float *cells = at + room_for_gates(be, l, e);
    float *hidden = cells + room_for_cells(l, e);
    bm_lstm_sweep s = {
        .T = e.T,
        .B = e.B,
        .H = H,
        .R = R,
        .rows = rows,
        .bf16 = bm_lstm_in_bf16(be),
        .frames = bm_cuda_frames(be, e),
        .wh = bm_lstm_read(be, l->wh, R * rows * bm_recurrent_width(l)),
        .b = bm_lstm_read(be, l->b, R * 4 * H),
        .gates = at,
        .cells = cells,
        .P = l->n_projected,
    };

    if (s.P > 0) {
        s.wr = bm_lstm_read(be, l->wr, R * s.P * H);
        s.hidden = hidden;
        s.down = hidden + room(be, l, e, H);
    }
    return s;
}

/* Products with x: n of them, each with `rows` rows of wx. */
typedef struct pieces {
    size_t n, rows;
} pieces;

static pieces pieces_of(const bm_recurrent *l)
{
    size_t rows = bm_recurrent_rows(l), R = l->directions;

    return l->cell == BM_LSTM ? (pieces){1, R * rows} : (pieces){R, rows};
}

void bm_lstm_around_forward(bm_backend *be, const bm_lstm_engine *engine,
                            const bm_recurrent *l, bm_extent e, const float *x,
                            float *y, float *kept)
{
    size_t D = l->n_in, frames = e.T * e.B, R = l->directions;
    size_t n_gates = R * 4 * l->n_hidden;
    pieces of = pieces_of(l);
    const void *in = bm_lstm_read(be, x, frames * D);
    const void *wx = bm_lstm_read(be, l->wx, of.n * of.rows * D);
    float *to = bm_cuda_write(be, kept, bm_lstm_around_kept(be, l, e));
    bm_lstm_sweep s = sweep_of(be, l, e, to);
    bm_cuda_finish finish = {.bias = l->cell == BM_LSTM ? s.b : NULL};

    s.y = bm_lstm_write(be, y, frames * R * bm_recurrent_width(l));
    for (size_t k = 0; k < of.n; k++)
        bm_cuda_multiply(
            be, bm_cuda_of(be)->stream, frames, of.rows, D, 1,
            factor(be, in, D, false),
            factor(be, bm_lstm_at(be, wx, k * of.rows * D), D, true), 0,
            (void *)bm_lstm_at(be, s.gates, k * 4 * l->n_hidden), type(be),
            n_gates, &finish);
    engine->sweep(be, &s, false);
}

static size_t width(const bm_lstm_sweep *s)
{
    return s->P > 0 ? s->P : s->H;
}

/* dwh = (gradients of wh y)' (y of the frame before): for each direction a
 * product over all frames but one, as y is zero before the first. It is for
 * `rows` rows of wh from `row` on, whose gradients are the values from `value`
 * on. */
static void recurrent_rows(bm_backend *be, const bm_lstm_sweep *s, size_t r,
                           const void *y, size_t row, size_t rows, size_t value,
                           float *dwh)
{
    size_t H = s->H, R = s->R, B = s->B, Y = width(s), n = (s->T - 1) * B;
    size_t later = r == 0 ? B * R * 4 * H : 0, earlier = r == 0 ? 0 : B * R * Y;
    float *out = dwh + (r * s->rows + row) * Y;
    const void *gates = bm_lstm_at(be, s->gates, later + r * 4 * H + value);
    const void *before = bm_lstm_at(be, y, earlier + r * Y);

    if (n == 0)
        BM_CUDA(be, cudaMemsetAsync(out, 0, rows * Y * sizeof *out,
                                    bm_cuda_of(be)->side));
    else
        bm_cuda_multiply(be, bm_cuda_of(be)->side, rows, Y, n, 1,
                         factor(be, gates, R * 4 * H, true),
                         factor(be, before, R * Y, false), 0, out, BM_CUDA_F32,
                         Y, NULL);
}

/* dwr = down' hidden, of direction r. */
static void projection_gradient(bm_backend *be, const bm_lstm_sweep *s,
                                size_t r, float *dwr)
{
    size_t H = s->H, R = s->R, P = s->P;

    bm_cuda_multiply(be, bm_cuda_of(be)->side, P, H, s->T * s->B, 1,
                     factor(be, bm_lstm_at(be, s->down, r * P), R * P, true),
                     factor(be, bm_lstm_at(be, s->hidden, r * H), R * H, false),
                     0, dwr + r * P * H, BM_CUDA_F32, H, NULL);
}

static void recurrent_gradient(bm_backend *be, const bm_lstm_sweep *s, size_t r,
                               const void *y, float *dwh)
{
    size_t H = s->H;

    if (s->rows == 4 * H) {
        recurrent_rows(be, s, r, y, 0, 4 * H, 0, dwh);
        return;
    }
    recurrent_rows(be, s, r, y, 0, 2 * H, 0, dwh);
    recurrent_rows(be, s, r, y, 2 * H, H, 3 * H, dwh);
}

void bm_lstm_lend(bm_backend *be, const bm_recurrent *l, bm_extent e,
                  const float *x, const float *y, const float *kept,
                  size_t n_kept, const float *dwx, const float *dwh,
                  const float *db)
{
    size_t frames = e.T * e.B, Y = bm_recurrent_width(l);
    size_t rows = l->directions * bm_recurrent_rows(l);

    bm_cuda_lend(be, x, frames * l->n_in, false);
    bm_cuda_lend(be, y, frames * l->directions * Y, false);
    bm_cuda_lend(be, kept, n_kept, false);
    bm_cuda_lend(be, dwx, rows * l->n_in, true);
    bm_cuda_lend(be, dwh, rows * Y, true);
    bm_cuda_lend(be, db, l->directions * 4 * l->n_hidden, true);
}

/* dx, on `stream`. */
static void input_gradient(bm_backend *be, const bm_recurrent *l,
                           const bm_lstm_sweep *s, const void *wx, void *dx)
{
    size_t D = l->n_in, n_gates = s->R * 4 * s->H;
    pieces of = pieces_of(l);

    for (size_t k = 0; k < of.n; k++)
        bm_cuda_multiply(
            be, bm_cuda_of(be)->stream, s->T * s->B, D, of.rows, 1,
            factor(be, bm_lstm_at(be, s->gates, k * 4 * s->H), n_gates, false),
            factor(be, bm_lstm_at(be, wx, k * of.rows * D), D, false),
            k > 0 ? 1 : 0, dx, type(be), D, NULL);
}

/* Gradients of weights, on the device. */
typedef struct gradients {
    float *wx, *wh, *b, *wr;
} gradients;

/* On `side`. */
static void weight_gradients(bm_backend *be, const bm_recurrent *l,
                             const bm_lstm_sweep *s, const void *x,
                             const void *y, gradients to)
{
    bm_cuda *cuda = bm_cuda_of(be);
    size_t D = l->n_in, frames = s->T * s->B, n_gates = s->R * 4 * s->H;
    pieces of = pieces_of(l);
    float *work = bm_cuda_room_for(be, &cuda->lstm->partial,
                                   bm_kernel_sum_rows_work(frames, n_gates) *
                                       sizeof *work);

    BM_CUDA(be, bm_kernel_sum_rows(cuda->side, frames, n_gates,
                                   (bm_in){s->gates, s->bf16}, work, to.b));
    for (size_t k = 0; k < of.n; k++)
        bm_cuda_multiply(
            be, cuda->side, of.rows, D, frames, 1,
            factor(be, bm_lstm_at(be, s->gates, k * 4 * s->H), n_gates, true),
            factor(be, x, D, false), 0, to.wx + k * of.rows * D, BM_CUDA_F32, D,
            NULL);
    for (size_t r = 0; r < s->R; r++) {
        recurrent_gradient(be, s, r, y, to.wh);
        if (s->P > 0)
            projection_gradient(be, s, r, to.wr);
    }
}

void bm_lstm_around_backward(bm_backend *be, const bm_lstm_engine *engine,
                             const bm_recurrent *l, bm_extent e, const float *x,
                             const float *y, const float *dy, float *kept,
                             float *dx, float *dwx, float *dwh, float *db,
                             float *dwr)
{
    size_t D = l->n_in, frames = e.T * e.B, R = l->directions;
    size_t rows = R * bm_recurrent_rows(l), Y = bm_recurrent_width(l);
    size_t n_kept = bm_lstm_around_kept(be, l, e), n_wr = R * Y * l->n_hidden;
    const void *in = bm_lstm_read(be, x, frames * D);
    const void *out = bm_lstm_read(be, y, frames * R * Y);
    const void *wx = bm_lstm_read(be, l->wx, rows * D);
    const void *down = bm_lstm_read(be, dy, frames * R * Y);
    bm_lstm_sweep s = sweep_of(be, l, e, kept);
    gradients to = {.wx = bm_cuda_write(be, dwx, rows * D),
                    .wh = bm_cuda_write(be, dwh, rows * Y),
                    .b = bm_cuda_write(be, db, R * 4 * l->n_hidden)};
    void *to_x = dx != NULL ? bm_lstm_write(be, dx, frames * D) : NULL;

    if (s.P > 0)
        to.wr = bm_cuda_write(be, dwr, n_wr);
    s.dy = down;
    engine->sweep(be, &s, true);
    if (dx != NULL)
        input_gradient(be, l, &s, wx, to_x);
    bm_cuda_fork(be);
    weight_gradients(be, l, &s, in, out, to);
    bm_lstm_lend(be, l, e, x, y, kept, n_kept, dwx, dwh, db);
    if (s.P > 0)
        bm_cuda_lend(be, dwr, n_wr, true);
}
