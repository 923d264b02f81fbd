/* lstm.cu - one time step of an LSTM, a thread for each cell of each sequence;
 * copies of frames and weights in another order. */
#include "compute/cuda/lstm/step.h"

__global__ static void place(bm_lstm_place from, bm_lstm_place *at)
{
    *at = from;
}

cudaError_t bm_kernel_lstm_place(cudaStream_t stream, const bm_lstm_place *from,
                                 bm_lstm_place *at)
{
    bm_lstm_place now = *from;

    return BM_LAUNCH(stream, place, 1, 1, 0, now, at);
}

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
    for (size_t b = blockIdx.y; b < at.B; b += gridDim.y) {
        size_t i = b * H + j, u = unit(s, at.B, t, b, j);
        S *gates = (S *)at.gates + (4 * (u - j) + j);
        const float *wh = recurrent + b * 4 * H + j;

        if (t < (size_t)at.frames[b]) {
            float c0 = step > 0 ? at.cells[unit(s, at.B, before, b, j)] : 0.0f;
            float in = sigmoid(get(gates) + wh[0]);
            float forget = sigmoid(get(gates + H) + wh[H]);
            float g = tanhf(get(gates + 2 * H) + wh[2 * H]);
            float out = sigmoid(get(gates + 3 * H) + wh[3 * H]);
            float c = forget * c0 + in * g, y = out * tanhf(c);

            put(gates, in);
            put(gates + H, forget);
            put(gates + 2 * H, g);
            put(gates + 3 * H, out);
            at.cells[u] = c;
            put((S *)at.y + u, y);
            put(h + i, y);
        } else {
            at.cells[u] = 0;
            put((S *)at.y + u, 0);
            put(h + i, 0);
        }
    }
}

template <typename S>
__global__ static void step_backward(bm_lstm_step s, const float *dh, float *dc,
                                     S *dgates)
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
        S *sent = dgates + b * 4 * H + j;
        float di = 0, df = 0, dg = 0, d_out = 0;

        if (t < (size_t)at.frames[b]) {
            float c0 = first ? 0.0f : at.cells[unit(s, at.B, before, b, j)];
            float in = get(gates), forget = get(gates + H);
            float g = get(gates + 2 * H), out = get(gates + 3 * H);
            float above = at.dy != NULL ? get((const S *)at.dy + u) : 0.0f;
            float d_h = above + dh[i];
            float squashed = tanhf(at.cells[u]);
            float d = dc[i] + d_h * out * (1 - squashed * squashed);

            di = d * g * (in * (1 - in));
            df = d * c0 * (forget * (1 - forget));
            dg = d * in * (1 - g * g);
            d_out = d_h * squashed * (out * (1 - out));
            dc[i] = d * forget;
        } else {
            dc[i] = 0;
        }
        put(gates, di);
        put(gates + H, df);
        put(gates + 2 * H, dg);
        put(gates + 3 * H, d_out);
        put(sent, di);
        put(sent + H, df);
        put(sent + 2 * H, dg);
        put(sent + 3 * H, d_out);
    }
}

cudaError_t bm_kernel_lstm_step(cudaStream_t stream, const bm_lstm_step *s,
                                const float *recurrent, void *h)
{
    bm_lstm_step of = *s;

    if (s->bf16)
        return BM_LAUNCH(stream, step_forward<bm_bf16>, step_grid(s, s->H),
                         step_block, 0, of, recurrent, (bm_bf16 *)h);
    return BM_LAUNCH(stream, step_forward<float>, step_grid(s, s->H),
                     step_block, 0, of, recurrent, (float *)h);
}

cudaError_t bm_kernel_lstm_step_back(cudaStream_t stream, const bm_lstm_step *s,
                                     const float *dh, float *dc, void *dgates)
{
    bm_lstm_step of = *s;

    if (s->bf16)
        return BM_LAUNCH(stream, step_backward<bm_bf16>, step_grid(s, s->H),
                         step_block, 0, of, dh, dc, (bm_bf16 *)dgates);
    return BM_LAUNCH(stream, step_backward<float>, step_grid(s, s->H),
                     step_block, 0, of, dh, dc, (float *)dgates);
}

template <typename S, typename To>
__global__ static void copy_pieces(bm_lstm_pieces p)
{
    const S *from = (const S *)p.of[blockIdx.y].from;
    To *to = (To *)p.of[blockIdx.y].to;

    BM_EACH(i, p.of[blockIdx.y].n)
    put(to + i, get(from + i));
}

cudaError_t bm_kernel_lstm_copy(cudaStream_t stream, const bm_lstm_pieces *p,
                                bool bf16, bool to_floats)
{
    bm_lstm_pieces of = *p;
    size_t most = 1;

    for (unsigned i = 0; i < of.count; i++)
        most = of.of[i].n > most ? of.of[i].n : most;
    dim3 grid(bm_grid(most), of.count);
    if (of.count == 0)
        return cudaSuccess;
    if (!bf16)
        return BM_LAUNCH(stream, (copy_pieces<float, float>), grid, bm_block, 0,
                         of);
    if (to_floats)
        return BM_LAUNCH(stream, (copy_pieces<bm_bf16, float>), grid, bm_block,
                         0, of);
    return BM_LAUNCH(stream, (copy_pieces<bm_bf16, bm_bf16>), grid, bm_block, 0,
                     of);
}

template <typename S> __global__ static void turn_frames(bm_lstm_turn of)
{
    for (size_t i = blockIdx.x; i < of.T * of.B; i += gridDim.x) {
        size_t t = i / of.B, b = i % of.B, length = (size_t)of.frames[b];
        size_t from = of.turned ? length - 1 - t : t;
        const S *x = (const S *)of.x + (from * of.B + b) * of.ld_x;
        S *y = (S *)of.y + i * of.ld_y;

        for (size_t j = threadIdx.x; j < of.n; j += blockDim.x) {
            float value = t < length ? get(x + j) : 0.0f;
            put(y + j, of.adds ? get(y + j) + value : value);
        }
    }
}

cudaError_t bm_kernel_lstm_turn(cudaStream_t stream, const bm_lstm_turn *t)
{
    bm_lstm_turn of = *t;
    size_t frames = of.T * of.B;
    unsigned grid = (unsigned)(frames < 65535 ? frames : 65535);

    if (frames == 0 || of.n == 0)
        return cudaSuccess;
    if (of.bf16)
        return BM_LAUNCH(stream, turn_frames<bm_bf16>, grid, bm_block, 0, of);
    return BM_LAUNCH(stream, turn_frames<float>, grid, bm_block, 0, of);
}
