/*
 * cuda_lstm_cudnn.c - LSTM layers by cuDNN's STANDARD algorithm: both
 * directions at once, with the sequences' lengths, on padded frames.
 */
#include "compute/cuda/device/cuda_side.h"
#include "compute/cuda/lstm/cuda_cudnn_rnn.h"
#include "compute/cuda/memory/cuda_ring.h"

enum { LINE = 256 / sizeof(float) };

static const bm_cudnn_layer *layer(bm_backend *be, const bm_recurrent *l,
                                   const char **why)
{
    return bm_cudnn_layer_of(be, CUDNN_RNN_ALGO_STANDARD, l->n_in, l->n_hidden,
                             l->directions, why);
}

static const char *obstacle(bm_backend *be, const bm_recurrent *l, bm_extent e)
{
    const char *why = NULL;

    (void)e;
    return layer(be, l, &why) != NULL ? NULL : why;
}

static bm_cudnn_pass pass_of(bm_backend *be, const bm_recurrent *l, bm_extent e)
{
    const char *why = NULL;
    bm_cudnn_pass p = {
        .layer = layer(be, l, &why), .T = e.T, .B = e.B, .frames = e.frames};

    BM_ASSERT(p.layer != NULL);
    return p;
}

/* `kept` is the weights in cuDNN's order, and cuDNN's reserve space. */
static size_t kept_for(bm_backend *be, const bm_recurrent *l, bm_extent e)
{
    bm_cudnn_pass p = pass_of(be, l, e);
    size_t bytes = bm_cudnn_lines(p.layer->weights) + bm_cudnn_reserve(be, &p);

    return LINE + bytes / sizeof(float);
}

static void place(bm_cudnn_pass *p, float *kept)
{
    p->weights = kept + (LINE - (uintptr_t)kept / sizeof *kept % LINE) % LINE;
    p->reserve = (char *)p->weights + bm_cudnn_lines(p->layer->weights);
}

static void forward(bm_backend *be, const bm_recurrent *l, bm_extent e,
                    const float *x, float *y, float *kept)
{
    size_t frames = e.T * e.B, n_y = l->directions * l->n_hidden;
    float *room = bm_cuda_write(be, kept, kept_for(be, l, e));
    bm_cudnn_pass p = pass_of(be, l, e);
    const void *in = bm_lstm_read(be, x, frames * l->n_in);

    place(&p, room);
    p.lengths = bm_cuda_frames(be, e);
    bm_cudnn_pack(be, &p, 0, bm_lstm_read(be, l->wx, 4 * n_y * l->n_in),
                  bm_lstm_read(be, l->wh, 4 * n_y * l->n_hidden),
                  bm_lstm_read(be, l->b, 4 * n_y));
    bm_cudnn_forward(be, &p, in, bm_lstm_write(be, y, frames * n_y));
}

static void backward(bm_backend *be, const bm_recurrent *l, bm_extent e,
                     const float *x, const float *y, const float *dy,
                     float *kept, float *dx, float *dwx, float *dwh, float *db)
{
    size_t frames = e.T * e.B, n_y = l->directions * l->n_hidden;
    size_t n_x = frames * l->n_in;
    bm_cudnn_pass p = pass_of(be, l, e);
    const void *in = bm_lstm_read(be, x, n_x);
    const void *out = bm_lstm_read(be, y, frames * n_y);
    const void *down = bm_lstm_read(be, dy, frames * n_y);
    float *to_wx = bm_cuda_write(be, dwx, 4 * n_y * l->n_in);
    float *to_wh = bm_cuda_write(be, dwh, 4 * n_y * l->n_hidden);
    float *to_b = bm_cuda_write(be, db, 4 * n_y);
    void *to_x = NULL;

    place(&p, kept);
    if (dx != NULL)
        to_x = bm_lstm_write(be, dx, n_x);
    else /* cuDNN requires dx */
        to_x = bm_cuda_room_for(be, &bm_cuda_of(be)->cudnn->dx[0],
                                n_x * sizeof(float));
    p.lengths = bm_cuda_frames(be, e);
    bm_cudnn_backward(be, &p, out, down, to_x);
    if (dx != NULL) /* cuDNN does not define dx in padding */
        BM_CUDA(be, bm_kernel_clear_padding(
                        bm_cuda_of(be)->stream, e.T, e.B, l->n_in, p.lengths,
                        (bm_out){to_x, bm_lstm_in_bf16(be)}));
    bm_cuda_fork(be);
    bm_cudnn_gradient(be, &p, in, out);
    bm_cudnn_unpack(be, &p, 0, to_wx, to_wh, to_b);
    bm_lstm_lend(be, l, e, x, y, kept, kept_for(be, l, e), dwx, dwh, db);
}

const bm_lstm_engine bm_lstm_engine_cudnn = {
    .name = "cudnn",
    .obstacle = obstacle,
    .kept = kept_for,
    .forward = forward,
    .backward = backward,
};
