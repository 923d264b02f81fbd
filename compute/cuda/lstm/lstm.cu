/* lstm.cu - one time step of an LSTM: the equations of a cell; copies of frames
 * and weights in another order. */
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

struct lstm_cell {
    static const unsigned matrices = 4;

    template <typename S>
    __device__ static float forward(size_t H, S *gates, const float *wh,
                                    const S *, float before, float *y)
    {
        float i = sigmoid(get(gates) + wh[0]);
        float f = sigmoid(get(gates + H) + wh[H]);
        float g = tanhf(get(gates + 2 * H) + wh[2 * H]);
        float o = sigmoid(get(gates + 3 * H) + wh[3 * H]);
        float c = f * before + i * g;

        put(gates, i);
        put(gates + H, f);
        put(gates + 2 * H, g);
        put(gates + 3 * H, o);
        *y = o * tanhf(c);
        return c;
    }

    template <typename S>
    __device__ static float backward(size_t H, const S *gates, float now,
                                     float before, float dy, float carried,
                                     float d[4])
    {
        float i = get(gates), f = get(gates + H);
        float g = get(gates + 2 * H), o = get(gates + 3 * H);
        float squashed = tanhf(now);
        float dc = carried + dy * o * (1 - squashed * squashed);

        d[0] = dc * g * (i * (1 - i));
        d[1] = dc * before * (f * (1 - f));
        d[2] = dc * i * (1 - g * g);
        d[3] = dy * squashed * (o * (1 - o));
        return dc * f;
    }
};

cudaError_t bm_kernel_lstm_step(cudaStream_t stream, const bm_lstm_step *s,
                                const float *recurrent, void *h)
{
    return launch_forward<lstm_cell>(stream, s, recurrent, h);
}

cudaError_t bm_kernel_lstm_step_back(cudaStream_t stream, const bm_lstm_step *s,
                                     const float *dh, float *dc, void *dgates)
{
    return launch_backward<lstm_cell>(stream, s, dh, dc, dgates);
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
