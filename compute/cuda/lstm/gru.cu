/* gru.cu - one time step of a GRU: the equations of a cell. */
#include "compute/cuda/lstm/step.h"

struct gru_cell {
    static const unsigned matrices = 3;

    template <typename S>
    __device__ static float forward(size_t H, S *gates, const float *wh,
                                    const S *b, float before, float *y)
    {
        float r = sigmoid(get(gates) + wh[0] + get(b));
        float z = sigmoid(get(gates + H) + wh[H] + get(b + H));
        float q = wh[2 * H] + get(b + 3 * H);
        float n = tanhf(get(gates + 2 * H) + get(b + 2 * H) + r * q);

        put(gates, r);
        put(gates + H, z);
        put(gates + 2 * H, n);
        put(gates + 3 * H, q);
        *y = n + z * (before - n);
        return *y;
    }

    template <typename S>
    __device__ static float backward(size_t H, const S *gates, float now,
                                     float before, float dy, float carried,
                                     float d[4])
    {
        float r = get(gates), z = get(gates + H), n = get(gates + 2 * H);
        float dh = dy + carried, dn = dh * (1 - z) * (1 - n * n);

        (void)now;
        d[0] = dn * get(gates + 3 * H) * (r * (1 - r));
        d[1] = dh * (before - n) * (z * (1 - z));
        d[2] = dn;
        d[3] = dn * r;
        return dh * z;
    }
};

cudaError_t bm_kernel_gru_step(cudaStream_t stream, const bm_lstm_step *s,
                               const float *recurrent, void *h)
{
    return launch_forward<gru_cell>(stream, s, recurrent, h);
}

cudaError_t bm_kernel_gru_step_back(cudaStream_t stream, const bm_lstm_step *s,
                                    const float *dh, float *past, void *dgates)
{
    return launch_backward<gru_cell>(stream, s, dh, past, dgates);
}
