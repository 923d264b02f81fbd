/*
 * cuda_lstm_around.c - an LSTM but for its recurrence: what does not depend on
 * the frame before is one product over all frames and both directions.
 *
 *     gates [T, B, R, 4, H]   forward: wx x + b, then i, f, g, o
 *                             backward: gradients of what went into them
 *     cells [T, B, R, H]      floats
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

static bm_lstm_sweep sweep_of(bm_backend *be, const bm_recurrent *l, bm_extent e,
                              float *kept)
{
    size_t H = l->n_hidden, R = l->directions;
    float *at = kept + (LINE - (uintptr_t)kept / sizeof *kept % LINE) % LINE;

    return (bm_lstm_sweep){
        .T = e.T,
        .B = e.B,
        .H = H,
        .R = R,
        .bf16 = bm_lstm_in_bf16(be),
        .frames = bm_cuda_frames(be, e),
        .wh = bm_lstm_read(be, l->wh, R * 4 * H * H),
        .gates = at,
        .cells = at + room_for_gates(be, l, e),
    };
}

void bm_lstm_around_forward(bm_backend *be, const bm_lstm_engine *engine,
                            const bm_recurrent *l, bm_extent e, const float *x,
                            float *y, float *kept)
{
    size_t D = l->n_in, frames = e.T * e.B, n_y = l->directions * l->n_hidden;
    size_t n_gates = 4 * n_y;
    const void *in = bm_lstm_read(be, x, frames * D);
    const void *wx = bm_lstm_read(be, l->wx, n_gates * D);
    bm_cuda_finish finish = {.bias = bm_lstm_read(be, l->b, n_gates)};
    float *room = bm_cuda_write(be, kept, bm_lstm_around_kept(be, l, e));
    bm_lstm_sweep s = sweep_of(be, l, e, room);

    s.y = bm_lstm_write(be, y, frames * n_y);
    bm_cuda_multiply(be, bm_cuda_of(be)->stream, frames, n_gates, D, 1,
                     factor(be, in, D, false), factor(be, wx, D, true), 0,
                     s.gates, type(be), n_gates, &finish);
    engine->sweep(be, &s, false);
}

/* dwh = (gradients of the gates)' (h of the frame before): for each direction
 * one product over all frames but one, as h is zero before the first. */
static void recurrent_gradient(bm_backend *be, const bm_lstm_sweep *s, size_t r,
                               const void *y, float *dwh)
{
    size_t H = s->H, R = s->R, B = s->B, n = (s->T - 1) * B;
    size_t later = B * R * 4 * H, earlier = 0;
    float *out = dwh + r * 4 * H * H;
    const void *gates = NULL, *h = NULL;

    if (n == 0) {
        BM_CUDA(be, cudaMemsetAsync(out, 0, 4 * H * H * sizeof *out,
                                    bm_cuda_of(be)->side));
        return;
    }
    if (r == 1)
        later = 0, earlier = B * R * H;
    gates = bm_lstm_at(be, s->gates, later + r * 4 * H);
    h = bm_lstm_at(be, y, earlier + r * H);
    bm_cuda_multiply(be, bm_cuda_of(be)->side, 4 * H, H, n, 1,
                     factor(be, gates, R * 4 * H, true),
                     factor(be, h, R * H, false), 0, out, BM_CUDA_F32, H, NULL);
}

void bm_lstm_lend(bm_backend *be, const bm_recurrent *l, bm_extent e, const float *x,
                  const float *y, const float *kept, size_t n_kept,
                  const float *dwx, const float *dwh, const float *db)
{
    size_t frames = e.T * e.B, n_y = l->directions * l->n_hidden;

    bm_cuda_lend(be, x, frames * l->n_in, false);
    bm_cuda_lend(be, y, frames * n_y, false);
    bm_cuda_lend(be, kept, n_kept, false);
    bm_cuda_lend(be, dwx, 4 * n_y * l->n_in, true);
    bm_cuda_lend(be, dwh, 4 * n_y * l->n_hidden, true);
    bm_cuda_lend(be, db, 4 * n_y, true);
}

void bm_lstm_around_backward(bm_backend *be, const bm_lstm_engine *engine,
                             const bm_recurrent *l, bm_extent e, const float *x,
                             const float *y, const float *dy, float *kept,
                             float *dx, float *dwx, float *dwh, float *db)
{
    bm_cuda *cuda = bm_cuda_of(be);
    size_t D = l->n_in, frames = e.T * e.B, n_y = l->directions * l->n_hidden;
    size_t n_gates = 4 * n_y, n_wh = n_gates * l->n_hidden;
    size_t n_kept = bm_lstm_around_kept(be, l, e);
    const void *in = bm_lstm_read(be, x, frames * D);
    const void *out = bm_lstm_read(be, y, frames * n_y);
    const void *wx = bm_lstm_read(be, l->wx, n_gates * D);
    const void *down = bm_lstm_read(be, dy, frames * n_y);
    bm_lstm_sweep s = sweep_of(be, l, e, kept);
    float *work = bm_cuda_room_for(be, &cuda->lstm->partial,
                                   bm_kernel_sum_rows_work(frames, n_gates) *
                                       sizeof *work);
    float *to_wx = bm_cuda_write(be, dwx, n_gates * D);
    float *to_wh = bm_cuda_write(be, dwh, n_wh);
    float *to_b = bm_cuda_write(be, db, n_gates);
    void *to_x = dx != NULL ? bm_lstm_write(be, dx, frames * D) : NULL;

    s.dy = down;
    engine->sweep(be, &s, true);
    if (dx != NULL)
        bm_cuda_multiply(be, cuda->stream, frames, D, n_gates, 1,
                         factor(be, s.gates, n_gates, false),
                         factor(be, wx, D, false), 0, to_x, type(be), D, NULL);
    bm_cuda_fork(be);
    BM_CUDA(be, bm_kernel_sum_rows(cuda->side, frames, n_gates,
                                   (bm_in){s.gates, s.bf16}, work, to_b));
    bm_cuda_multiply(be, cuda->side, n_gates, D, frames, 1,
                     factor(be, s.gates, n_gates, true),
                     factor(be, in, D, false), 0, to_wx, BM_CUDA_F32, D, NULL);
    for (size_t r = 0; r < l->directions; r++)
        recurrent_gradient(be, &s, r, out, to_wh);
    bm_lstm_lend(be, l, e, x, y, kept, n_kept, dwx, dwh, db);
}
