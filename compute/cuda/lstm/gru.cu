/* gru.cu - one time step of a GRU, a thread for each cell of each sequence. */
#include "compute/cuda/lstm/step.h"

template <typename S>
__global__ static void step_forward(bm_lstm_step s, const float *recurrent,
                                    S *h)
{
    bm_lstm_place at = *s.at;
    size_t step = at.step + s.step, H = s.H;
    size_t t = s.r == 0 ? step : at.T - 1 - step;
    size_t before = s.r == 0 ? t - 1 : t + 1;
    size_t j = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (step >= at.T || j >= H)
        return;
    for (size_t i = blockIdx.y; i < at.B; i += gridDim.y) {
        size_t u = unit(s, at.B, t, i, j);
        S *gates = (S *)at.gates + (4 * (u - j) + j);
        const S *b = (const S *)s.b + j;
        const float *wh = recurrent + i * 3 * H + j;
        float y = 0;

        if (t < (size_t)at.frames[i]) {
            float h0 = step > 0 ? at.cells[unit(s, at.B, before, i, j)] : 0.0f;
            float r = sigmoid(get(gates) + wh[0] + get(b));
            float z = sigmoid(get(gates + H) + wh[H] + get(b + H));
            float q = wh[2 * H] + get(b + 3 * H);
            float n = tanhf(get(gates + 2 * H) + get(b + 2 * H) + r * q);

            y = n + z * (h0 - n);
            put(gates, r);
            put(gates + H, z);
            put(gates + 2 * H, n);
            put(gates + 3 * H, q);
        }
        at.cells[u] = y;
        put((S *)at.y + u, y);
        put(h + i * H + j, y);
    }
}

template <typename S>
__global__ static void step_backward(bm_lstm_step s, const float *dh,
                                     float *past, S *dgates)
{
    bm_lstm_place at = *s.at;
    size_t done = at.step + s.step, H = s.H;
    size_t t = s.r == 0 ? at.T - 1 - done : done;
    size_t before = s.r == 0 ? t - 1 : t + 1;
    size_t j = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    bool first = done + 1 == at.T; /* of the forward pass */

    if (done >= at.T || j >= H)
        return;
    for (size_t b = blockIdx.y; b < at.B; b += gridDim.y) {
        size_t i = b * H + j, u = unit(s, at.B, t, b, j);
        S *gates = (S *)at.gates + (4 * (u - j) + j);
        S *sent = dgates + b * 3 * H + j;
        float dr = 0, dz = 0, dn = 0, dq = 0, d = 0, z = 0;

        if (t < (size_t)at.frames[b]) {
            float h0 = first ? 0.0f : at.cells[unit(s, at.B, before, b, j)];
            float r = get(gates), n = get(gates + 2 * H);

            z = get(gates + H);
            d = get((const S *)at.dy + u) + dh[i] + past[i];
            dn = d * (1 - z) * (1 - n * n);
            dq = dn * r;
            dr = dn * get(gates + 3 * H) * (r * (1 - r));
            dz = d * (h0 - n) * (z * (1 - z));
        }
        past[i] = d * z;
        put(gates, dr);
        put(gates + H, dz);
        put(gates + 2 * H, dn);
        put(gates + 3 * H, dq);
        put(sent, dr);
        put(sent + H, dz);
        put(sent + 2 * H, dq);
    }
}

cudaError_t bm_kernel_gru_step(cudaStream_t stream, const bm_lstm_step *s,
                               const float *recurrent, void *h)
{
    bm_lstm_step of = *s;

    if (s->bf16)
        return BM_LAUNCH(stream, step_forward<bm_bf16>, step_grid(s, s->H),
                         step_block, 0, of, recurrent, (bm_bf16 *)h);
    return BM_LAUNCH(stream, step_forward<float>, step_grid(s, s->H),
                     step_block, 0, of, recurrent, (float *)h);
}

cudaError_t bm_kernel_gru_step_back(cudaStream_t stream, const bm_lstm_step *s,
                                    const float *dh, float *past, void *dgates)
{
    bm_lstm_step of = *s;

    if (s->bf16)
        return BM_LAUNCH(stream, step_backward<bm_bf16>, step_grid(s, s->H),
                         step_block, 0, of, dh, past, (bm_bf16 *)dgates);
    return BM_LAUNCH(stream, step_backward<float>, step_grid(s, s->H),
                     step_block, 0, of, dh, past, (float *)dgates);
}
