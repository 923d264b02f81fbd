/* cuda_lstm_grid.c - an LSTM whose time steps are all in one kernel, of blocks
 * that all run at once. */
#include "compute/cuda/lstm/cuda_lstm.h"

static const char *obstacle(bm_backend *be, const bm_lstm *l, bm_extent e)
{
    (void)e;
    if (!bm_lstm_in_bf16(be))
        return "grids compute in bf16 alone";
    if (!bm_kernel_lstm_grid_fits(bm_cuda_of(be)->major, l->n_hidden,
                                  l->directions))
        return "this device cannot run blocks for so many units at once";
    return NULL;
}

typedef cudaError_t launcher(cudaStream_t, const bm_lstm_cluster *, size_t,
                             void *);

static void sweep(bm_backend *be, const bm_lstm_cluster *l, bm_lstm_grid needs,
                  launcher *launch)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    void *room = bm_cuda_scratch(be, needs.room);

    for (size_t first = 0; first < l->B; first += needs.most) {
        BM_CUDA(be, bm_step_clear(be, stream, room, needs.room));
        BM_CUDA(be, launch(stream, l, first, room));
    }
}

static void sweep_forward(bm_backend *be, const bm_lstm_sweep *s)
{
    bm_lstm_cluster l = bm_lstm_cluster_of(s);

    sweep(be, &l, bm_kernel_lstm_grid_forward_needs(&l),
          bm_kernel_lstm_grid_forward);
}

static void sweep_backward(bm_backend *be, const bm_lstm_sweep *s)
{
    bm_lstm_cluster l = bm_lstm_cluster_of(s);

    sweep(be, &l, bm_kernel_lstm_grid_backward_needs(&l),
          bm_kernel_lstm_grid_backward);
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

const bm_lstm_engine bm_lstm_engine_grid = {
    .name = "grid",
    .obstacle = obstacle,
    .kept = bm_lstm_around_kept,
    .forward = forward,
    .backward = backward,
};
