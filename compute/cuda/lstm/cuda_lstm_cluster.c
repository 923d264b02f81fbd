/* cuda_lstm_cluster.c - an LSTM whose time steps are all in one kernel. */
#include "compute/cuda/lstm/cuda_lstm.h"
#include "compute/cuda/lstm/lstm_kernels.h"

static const char *obstacle(bm_backend *be, const bm_recurrent *l, bm_extent e)
{
    bool able = false;

    (void)e;
    if (!bm_lstm_in_bf16(be))
        return "the kernel computes in bf16 only";
    BM_CUDA(be, bm_kernel_lstm_cluster_fits(bm_cuda_of(be)->major, l->n_hidden,
                                            &able));
    if (be->failed == BM_OK && !able)
        return "the device cannot run clusters for this hidden size";
    return NULL;
}

static void sweep(bm_backend *be, const bm_lstm_sweep *s, bool backward)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    bm_lstm_cluster c = {
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

    if (backward)
        BM_CUDA(be, bm_kernel_lstm_cluster_backward(stream, &c));
    else
        BM_CUDA(be, bm_kernel_lstm_cluster_forward(stream, &c));
}

const bm_lstm_engine bm_lstm_engine_cluster = {
    .name = "cluster",
    .obstacle = obstacle,
    .sweep = sweep,
};
