/* project.cu - one time step of the projection of an LSTM, around its products: a
 * thread for each output of each sequence. */
#include "compute/cuda/lstm/step.h"

/* The index of output j of sequence b at frame t in [T, B, R, P]. */
BM_INLINE size_t output(const bm_lstm_step &s, size_t B, size_t t, size_t b,
                        size_t j)
{
    return ((t * B + b) * s.R + s.r) * s.P + j;
}

template <typename S> __global__ static void project(bm_lstm_step s, const S *p)
{
    bm_lstm_place at = *s.at;
    size_t step = at.step + s.step, t = s.r == 0 ? step : at.T - 1 - step;
    size_t j = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (step >= at.T || j >= s.P)
        return;
    for (size_t b = blockIdx.y; b < at.B; b += gridDim.y) {
        bool inside = t < (size_t)at.frames[b];

        put((S *)at.projected + output(s, at.B, t, b, j),
            inside ? get(p + b * s.P + j) : 0.0f);
    }
}

template <typename S>
__global__ static void project_back(bm_lstm_step s, const float *dp, S *d)
{
    bm_lstm_place at = *s.at;
    size_t done = at.step + s.step, t = s.r == 0 ? at.T - 1 - done : done;
    size_t j = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (done >= at.T || j >= s.P)
        return;
    for (size_t b = blockIdx.y; b < at.B; b += gridDim.y) {
        size_t i = b * s.P + j, u = output(s, at.B, t, b, j);
        float sum = 0;

        if (t < (size_t)at.frames[b])
            sum = get((const S *)at.dprojected + u) + dp[i];
        put((S *)at.projected + u, sum);
        put(d + i, sum);
    }
}

cudaError_t bm_kernel_lstm_project(cudaStream_t stream, const bm_lstm_step *s,
                                   const void *p)
{
    bm_lstm_step of = *s;

    if (s->bf16)
        return BM_LAUNCH(stream, project<bm_bf16>, step_grid(s, s->P),
                         step_block, 0, of, (const bm_bf16 *)p);
    return BM_LAUNCH(stream, project<float>, step_grid(s, s->P), step_block, 0,
                     of, (const float *)p);
}

cudaError_t bm_kernel_lstm_project_back(cudaStream_t stream,
                                        const bm_lstm_step *s, const float *dp,
                                        void *d)
{
    bm_lstm_step of = *s;

    if (s->bf16)
        return BM_LAUNCH(stream, project_back<bm_bf16>, step_grid(s, s->P),
                         step_block, 0, of, dp, (bm_bf16 *)d);
    return BM_LAUNCH(stream, project_back<float>, step_grid(s, s->P),
                     step_block, 0, of, dp, (float *)d);
}
