/* cuda_lstm_cluster.c - an LSTM whose time steps are all in one kernel. */
#include "compute/cuda/lstm/cuda_lstm.h"

static const char *obstacle(bm_backend *be, const bm_lstm *l, bm_extent e)
{
    (void)e;
    if (!bm_lstm_in_bf16(be))
        return "clusters compute in bf16 alone";
    if (!bm_kernel_lstm_cluster_fits(bm_cuda_of(be)->major, l->n_hidden))
        return "this device has no clusters for so many units";
    return NULL;
}

bm_lstm_cluster bm_lstm_cluster_of(const bm_lstm_sweep *s)
{
    return (bm_lstm_cluster){
        .T = s->T,
        .B = s->B,
        .H = s->H,
        .R = s->R,
        .frames = s->frames,
        .wh = s->wh,
        .gates = s->gates,
        .y = s->y,
        .cells = s->cells,
        .dy = s->dy,
    };
}

static void sweep_forward(bm_backend *be, const bm_lstm_sweep *s)
{
    bm_lstm_cluster c = bm_lstm_cluster_of(s);

    BM_CUDA(be, bm_kernel_lstm_cluster_forward(bm_cuda_of(be)->stream, &c));
}

static void sweep_backward(bm_backend *be, const bm_lstm_sweep *s)
{
    bm_lstm_cluster c = bm_lstm_cluster_of(s);

    BM_CUDA(be, bm_kernel_lstm_cluster_backward(bm_cuda_of(be)->stream, &c));
}

static void forward(bm_backend *be, const bm_lstm *l, bm_extent e,
                    const float *x, float *y, float *kept)
{
    bm_lstm_around_forward(be, l, e, x, y, kept, sweep_forward);
}

static void backward(bm_backend *be, const bm_lstm *l, bm_extent e,
                     const float *x, const float *y, const float *dy,
                     float *kept, float *dx, float *dwx, float *dwh, float *db)
{
    bm_lstm_around_backward(be, l, e, x, y, dy, kept, dx, dwx, dwh, db,
                            sweep_backward);
}

const bm_lstm_engine bm_lstm_engine_cluster = {
    .name = "cluster",
    .obstacle = obstacle,
    .kept = bm_lstm_around_kept,
    .forward = forward,
    .backward = backward,
};
