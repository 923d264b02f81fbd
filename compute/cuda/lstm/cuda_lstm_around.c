/*
 * cuda_lstm_around.c - an LSTM or a GRU but for its recurrence: what does not
 * depend on the frame before is one product over all frames, of an LSTM also
 * over both directions, whose gates lie side by side.
 *
 *     gates [T, B, R, 4, H]   forward: wx x (and b of an LSTM), then i, f, g, o,
 *                             or r, z, n, q
 *                             backward: gradients of what went into them
 *     cells [T, B, R, H]      floats: c of an LSTM, h of a GRU
 *
 * With bf16, gates, y and dx are bf16 only. Gradients of weights are computed
 * on `side`, beside the recurrence of the layer below.
 */
#include "compute/cuda/device/cuda_side.h"
#include "compute/cuda/libraries/cuda_products.h"
#include "compute/cuda/lstm/cuda_lstm.h"
#include "compute/cuda/memory/cuda_ring.h"

enum { LINE = 256 / sizeof(float) }; /* alignment, in floats */

/* The gates' room in floats, whole lines. */
static size_t room_for_gates(bm_backend *be, const bm_recurrent *l, bm_extent e)
{
    size_t n = e.T * e.B * l->directions * 4 * l->n_hidden;

    if (bm_lstm_in_bf16(be))
        n = (n + 1) / 2;
    return (n + LINE - 1) / LINE * LINE;
}

size_t bm_lstm_around_kept(bm_backend *be, const bm_recurrent *l, bm_extent e)
{
    return LINE + room_for_gates(be, l, e) +
           e.T * e.B * l->directions * l->n_hidden;
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

    return (bm_lstm_sweep){
        .T = e.T,
        .B = e.B,
        .H = H,
        .R = R,
        .rows = rows,
        .bf16 = bm_lstm_in_bf16(be),
        .frames = bm_cuda_frames(be, e),
        .wh = bm_lstm_read(be, l->wh, R * rows * H),
        .b = bm_lstm_read(be, l->b, R * 4 * H),
        .gates = at,
        .cells = at + room_for_gates(be, l, e),
    };
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
    size_t D = l->n_in, frames = e.T * e.B, n_y = l->directions * l->n_hidden;
    size_t n_gates = 4 * n_y;
    pieces of = pieces_of(l);
    const void *in = bm_lstm_read(be, x, frames * D);
    const void *wx = bm_lstm_read(be, l->wx, of.n * of.rows * D);
    float *room = bm_cuda_write(be, kept, bm_lstm_around_kept(be, l, e));
    bm_lstm_sweep s = sweep_of(be, l, e, room);
    bm_cuda_finish finish = {.bias = l->cell == BM_LSTM ? s.b : NULL};

    s.y = bm_lstm_write(be, y, frames * n_y);
    for (size_t k = 0; k < of.n; k++)
        bm_cuda_multiply(
            be, bm_cuda_of(be)->stream, frames, of.rows, D, 1,
            factor(be, in, D, false),
            factor(be, bm_lstm_at(be, wx, k * of.rows * D), D, true), 0,
            (void *)bm_lstm_at(be, s.gates, k * 4 * l->n_hidden), type(be),
            n_gates, &finish);
    engine->sweep(be, &s, false);
}

/* dwh = (gradients of wh h)' (h of the frame before): for each direction a
 * product over all frames but one, as h is zero before the first. It is for
 * `rows` rows of wh from `row` on, whose gradients are the values from `value`
 * on. */
static void recurrent_rows(bm_backend *be, const bm_lstm_sweep *s, size_t r,
                           const void *y, size_t row, size_t rows, size_t value,
                           float *dwh)
{
    size_t H = s->H, R = s->R, B = s->B, n = (s->T - 1) * B;
    size_t later = r == 0 ? B * R * 4 * H : 0, earlier = r == 0 ? 0 : B * R * H;
    float *out = dwh + (r * s->rows + row) * H;
    const void *gates = bm_lstm_at(be, s->gates, later + r * 4 * H + value);
    const void *h = bm_lstm_at(be, y, earlier + r * H);

    if (n == 0)
        BM_CUDA(be, cudaMemsetAsync(out, 0, rows * H * sizeof *out,
                                    bm_cuda_of(be)->side));
    else
        bm_cuda_multiply(be, bm_cuda_of(be)->side, rows, H, n, 1,
                         factor(be, gates, R * 4 * H, true),
                         factor(be, h, R * H, false), 0, out, BM_CUDA_F32, H,
                         NULL);
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
    size_t frames = e.T * e.B, n_y = l->directions * l->n_hidden;
    size_t rows = l->directions * bm_recurrent_rows(l);

    bm_cuda_lend(be, x, frames * l->n_in, false);
    bm_cuda_lend(be, y, frames * n_y, false);
    bm_cuda_lend(be, kept, n_kept, false);
    bm_cuda_lend(be, dwx, rows * l->n_in, true);
    bm_cuda_lend(be, dwh, rows * l->n_hidden, true);
    bm_cuda_lend(be, db, 4 * n_y, true);
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

/* Gradients of weights, on `side`. */
static void weight_gradients(bm_backend *be, const bm_recurrent *l,
                             const bm_lstm_sweep *s, const void *x,
                             const void *y, float *dwx, float *dwh, float *db)
{
    bm_cuda *cuda = bm_cuda_of(be);
    size_t D = l->n_in, frames = s->T * s->B, n_gates = s->R * 4 * s->H;
    pieces of = pieces_of(l);
    float *work = bm_cuda_room_for(be, &cuda->lstm->partial,
                                   bm_kernel_sum_rows_work(frames, n_gates) *
                                       sizeof *work);

    BM_CUDA(be, bm_kernel_sum_rows(cuda->side, frames, n_gates,
                                   (bm_in){s->gates, s->bf16}, work, db));
    for (size_t k = 0; k < of.n; k++)
        bm_cuda_multiply(
            be, cuda->side, of.rows, D, frames, 1,
            factor(be, bm_lstm_at(be, s->gates, k * 4 * s->H), n_gates, true),
            factor(be, x, D, false), 0, dwx + k * of.rows * D, BM_CUDA_F32, D,
            NULL);
    for (size_t r = 0; r < s->R; r++)
        recurrent_gradient(be, s, r, y, dwh);
}

void bm_lstm_around_backward(bm_backend *be, const bm_lstm_engine *engine,
                             const bm_recurrent *l, bm_extent e, const float *x,
                             const float *y, const float *dy, float *kept,
                             float *dx, float *dwx, float *dwh, float *db)
{
    size_t D = l->n_in, frames = e.T * e.B, n_y = l->directions * l->n_hidden;
    size_t rows = l->directions * bm_recurrent_rows(l);
    size_t n_kept = bm_lstm_around_kept(be, l, e);
    const void *in = bm_lstm_read(be, x, frames * D);
    const void *out = bm_lstm_read(be, y, frames * n_y);
    const void *wx = bm_lstm_read(be, l->wx, rows * D);
    const void *down = bm_lstm_read(be, dy, frames * n_y);
    bm_lstm_sweep s = sweep_of(be, l, e, kept);
    float *to_wx = bm_cuda_write(be, dwx, rows * D);
    float *to_wh = bm_cuda_write(be, dwh, rows * l->n_hidden);
    float *to_b = bm_cuda_write(be, db, 4 * n_y);
    void *to_x = dx != NULL ? bm_lstm_write(be, dx, frames * D) : NULL;

    s.dy = down;
    engine->sweep(be, &s, true);
    if (dx != NULL)
        input_gradient(be, l, &s, wx, to_x);
    bm_cuda_fork(be);
    weight_gradients(be, l, &s, in, out, to_wx, to_wh, to_b);
    bm_lstm_lend(be, l, e, x, y, kept, n_kept, dwx, dwh, db);
}
