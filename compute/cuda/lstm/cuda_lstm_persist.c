/*
 * cuda_lstm_persist.c - LSTM layers by cuDNN's PERSIST_STATIC algorithm, which
 * takes 16-bit numbers, one direction, and no lengths. It runs once for each
 * direction, on all T frames; for the second one each sequence is reversed
 * within its length. What it computes past a sequence's end is not read, and
 * gradients there are zero.
 */
#include "compute/cuda/device/cuda_side.h"
#include "compute/cuda/lstm/cuda_cudnn_rnn.h"
#include "compute/cuda/lstm/lstm_step_kernels.h"
#include "compute/cuda/memory/cuda_ring.h"

#include <stdlib.h>

enum { LINE = 256 / sizeof(float) };

static const bm_cudnn_layer *layer(bm_backend *be, const bm_recurrent *l,
                                   const char **why)
{
    return bm_cudnn_layer_of(be, CUDNN_RNN_ALGO_PERSIST_STATIC, l->n_in,
                             l->n_hidden, 1, why);
}

static const char *obstacle(bm_backend *be, const bm_recurrent *l, bm_extent e)
{
    const char *why = NULL;

    (void)e;
    if (!bm_lstm_in_bf16(be))
        return "cuDNN's persistent kernels compute in bf16 only";
    return layer(be, l, &why) != NULL ? NULL : why;
}

/* One direction and its vectors, bf16. */
typedef struct direction {
    bm_cudnn_pass pass;
    size_t r;
    void *x; /* [T, B, D]: reversed; only if r = 1 */
    void *y; /* [T, B, H] */
} direction;

/* B times T, on the host. */
static const int32_t *all_frames(bm_backend *be, bm_extent e)
{
    bm_cudnn *c = bm_cuda_of(be)->cudnn;

    if (e.B > c->n_full) {
        free(c->full);
        c->n_full = e.B;
        c->full = malloc(e.B * sizeof *c->full);
        BM_ASSERT(c->full != NULL);
    }
    for (size_t b = 0; b < e.B; b++)
        c->full[b] = (int32_t)e.T;
    return c->full;
}

static bm_cudnn_pass pass_of(bm_backend *be, const bm_recurrent *l, bm_extent e)
{
    const char *why = NULL;
    bm_cudnn_pass p = {.layer = layer(be, l, &why),
                       .T = e.T,
                       .B = e.B,
                       .frames = all_frames(be, e)};

    BM_ASSERT(p.layer != NULL);
    return p;
}

/* Bytes. */
typedef struct sizes {
    size_t weights, reserve, x, y;
} sizes;

static sizes sizes_of(bm_backend *be, const bm_recurrent *l, bm_extent e)
{
    bm_cudnn_pass p = pass_of(be, l, e);
    size_t frames = e.T * e.B;

    return (sizes){.weights = bm_cudnn_lines(p.layer->weights),
                   .reserve = bm_cudnn_reserve(be, &p),
                   .x = bm_cudnn_lines(frames * l->n_in * sizeof(bm_bf16)),
                   .y = bm_cudnn_lines(frames * l->n_hidden * sizeof(bm_bf16))};
}

static size_t kept_for(bm_backend *be, const bm_recurrent *l, bm_extent e)
{
    sizes s = sizes_of(be, l, e);

    return LINE +
           l->directions * (s.weights + s.reserve + s.x + s.y) / sizeof(float);
}

static direction direction_of(bm_backend *be, const bm_recurrent *l,
                              bm_extent e, float *kept, size_t r)
{
    sizes s = sizes_of(be, l, e);
    char *at =
        (char *)(kept + (LINE - (uintptr_t)kept / sizeof *kept % LINE) % LINE);
    direction d = {.pass = pass_of(be, l, e), .r = r};

    at += r * (s.weights + s.reserve + s.x + s.y);
    d.pass.weights = at;
    d.pass.reserve = at + s.weights;
    d.pass.lengths =
        bm_cuda_send(be, d.pass.frames, e.B * sizeof *d.pass.frames);
    d.x = at + s.weights + s.reserve;
    d.y = at + s.weights + s.reserve + s.x;
    return d;
}

/* Copies frames of n numbers, reversed in time if r = 1. */
static void turn(bm_backend *be, bm_extent e, size_t n, const int32_t *lengths,
                 const direction *d, const void *x, size_t ld_x, void *y,
                 size_t ld_y, bool adds)
{
    bm_lstm_turn t = {.T = e.T,
                      .B = e.B,
                      .n = n,
                      .frames = lengths,
                      .bf16 = true,
                      .turned = d->r == 1,
                      .adds = adds,
                      .x = x,
                      .y = y,
                      .ld_x = ld_x,
                      .ld_y = ld_y};

    BM_CUDA(be, bm_kernel_lstm_turn(bm_cuda_of(be)->stream, &t));
}

static void forward(bm_backend *be, const bm_recurrent *l, bm_extent e,
                    const float *x, float *y, float *kept)
{
    size_t frames = e.T * e.B, D = l->n_in, H = l->n_hidden, R = l->directions;
    float *room = bm_cuda_write(be, kept, kept_for(be, l, e));
    const int32_t *lengths = bm_cuda_frames(be, e);
    const void *in = bm_cuda_read16(be, x, frames * D);
    const void *wx = bm_cuda_read16(be, l->wx, R * 4 * H * D);
    const void *wh = bm_cuda_read16(be, l->wh, R * 4 * H * H);
    const void *b = bm_cuda_read16(be, l->b, R * 4 * H);
    bm_bf16 *out = bm_cuda_write16(be, y, frames * R * H);

    for (size_t r = 0; r < R; r++) {
        direction d = direction_of(be, l, e, room, r);

        if (r == 1)
            turn(be, e, D, lengths, &d, in, D, d.x, D, false);
        bm_cudnn_pack(be, &d.pass, r, wx, wh, b);
        bm_cudnn_forward(be, &d.pass, r == 1 ? d.x : in, d.y);
        turn(be, e, H, lengths, &d, d.y, H, out + r * H, R * H, false);
    }
}

/* dx of one direction, in its order of time. */
static const void *descend(bm_backend *be, const bm_recurrent *l, bm_extent e,
                           const direction *d, const bm_bf16 *dy,
                           const int32_t *lengths)
{
    bm_cudnn *c = bm_cuda_of(be)->cudnn;
    size_t frames = e.T * e.B, H = l->n_hidden;
    void *own =
        bm_cuda_room_for(be, &c->dy[d->r], frames * H * sizeof(bm_bf16));
    void *dx =
        bm_cuda_room_for(be, &c->dx[d->r], frames * l->n_in * sizeof(bm_bf16));

    turn(be, e, H, lengths, d, dy + d->r * H, l->directions * H, own, H, false);
    bm_cudnn_backward(be, &d->pass, d->y, own, dx);
    return dx;
}

static void backward(bm_backend *be, const bm_recurrent *l, bm_extent e,
                     const float *x, const float *y, const float *dy,
                     float *kept, float *dx, float *dwx, float *dwh, float *db)
{
    size_t frames = e.T * e.B, D = l->n_in, H = l->n_hidden, R = l->directions;
    const int32_t *lengths = bm_cuda_frames(be, e);
    const void *in = bm_cuda_read16(be, x, frames * D);
    const bm_bf16 *down = bm_cuda_read16(be, dy, frames * R * H);
    float *to_wx = bm_cuda_write(be, dwx, R * 4 * H * D);
    float *to_wh = bm_cuda_write(be, dwh, R * 4 * H * H);
    float *to_b = bm_cuda_write(be, db, R * 4 * H);
    void *to_x = dx != NULL ? bm_cuda_write16(be, dx, frames * D) : NULL;
    direction directions[2];

    for (size_t r = 0; r < R; r++) {
        direction d = directions[r] = direction_of(be, l, e, kept, r);
        const void *own = descend(be, l, e, &d, down, lengths);

        if (dx != NULL)
            turn(be, e, D, lengths, &d, own, D, to_x, D, r > 0);
    }
    bm_cuda_fork(be);
    for (size_t r = 0; r < R; r++) {
        const direction *d = &directions[r];
        bm_cudnn_gradient(be, &d->pass, r == 1 ? d->x : in, d->y);
        bm_cudnn_unpack(be, &d->pass, r, to_wx, to_wh, to_b);
    }
    bm_lstm_lend(be, l, e, x, y, kept, kept_for(be, l, e), dwx, dwh, db);
}

const bm_lstm_engine bm_lstm_engine_persist = {
    .name = "persist",
    .obstacle = obstacle,
    .kept = kept_for,
    .forward = forward,
    .backward = backward,
};
