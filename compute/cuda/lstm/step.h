/*
 * step.h - what the kernels of one time step share: lstm.cu, gru.cu, project.cu.
 *
 * A cell, lstm_cell or gru_cell, is a type with the equations of one unit:
 *
 *     matrices    how many of them read h. What k of them makes is part of value
 *                 k, and the last one's part of value 3 (o, or q of a GRU).
 *     forward     from wx x in `gates`, wh h and b, all H apart, and `before`, c
 *                 or h of the frame before, to the values in `gates` and *y.
 *                 Returns what `cells` keeps: c, or h.
 *     backward    from the values, what `cells` keeps now and kept before, and
 *                 the gradients of y and of what was carried from the step
 *                 after, to those of the four values' inputs, and of what is
 *                 carried to the step before.
 */
#ifndef BM_COMPUTE_CUDA_LSTM_STEP_H
#define BM_COMPUTE_CUDA_LSTM_STEP_H

#include "compute/cuda/kernels/kernel.h"
#include "compute/cuda/lstm/lstm_step_kernels.h"

BM_INLINE float get(const float *x)
{
    return *x;
}

BM_INLINE float get(const bm_bf16 *x)
{
    return bm_of_bf16(*x);
}

BM_INLINE void put(float *x, float value)
{
    *x = value;
}

BM_INLINE void put(bm_bf16 *x, float value)
{
    *x = bm_to_bf16(value);
}

BM_INLINE float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* The index of cell j of sequence b at frame t in [T, B, R, H]. In gates it is
 * four times as much, less 3 j. */
BM_INLINE size_t unit(const bm_lstm_step &s, size_t B, size_t t, size_t b,
                      size_t j)
{
    return ((t * B + b) * s.R + s.r) * s.H + j;
}

/* Small blocks, so that all multiprocessors get some: a step is short. */
static const unsigned step_block = 128;

/* Blocks along n cells or outputs, along sequences. */
static inline dim3 step_grid(const bm_lstm_step *s, size_t n)
{
    return dim3((unsigned)((n + step_block - 1) / step_block),
                (unsigned)(s->rows < 65535 ? s->rows : 65535));
}

/* A thread for each cell of each sequence. */
template <typename Cell, typename S>
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
        size_t u = unit(s, at.B, t, b, j);
        float kept = 0, y = 0;

        if (t < (size_t)at.frames[b]) {
            float past =
                step > 0 ? at.cells[unit(s, at.B, before, b, j)] : 0.0f;

            kept = Cell::forward(H, (S *)at.gates + (4 * (u - j) + j),
                                 recurrent + b * Cell::matrices * H + j,
                                 (const S *)s.b + j, past, &y);
        }
        at.cells[u] = kept;
        put((S *)at.y + u, y);
        put(h + b * H + j, y);
    }
}

template <typename Cell, typename S>
__global__ static void step_backward(bm_lstm_step s, const float *dh,
                                     float *carried, S *dgates)
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
        S *sent = dgates + b * Cell::matrices * H + j;
        float d[4] = {0, 0, 0, 0}, carry = 0;

        if (t < (size_t)at.frames[b]) {
            float past = first ? 0.0f : at.cells[unit(s, at.B, before, b, j)];
            float above = at.dy != NULL ? get((const S *)at.dy + u) : 0.0f;

            carry = Cell::backward(H, gates, at.cells[u], past, above + dh[i],
                                   carried[i], d);
        }
        carried[i] = carry;
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            put(gates + k * H, d[k]);
#pragma unroll
        for (unsigned k = 0; k < Cell::matrices; k++)
            put(sent + k * H, d[k + 1 < Cell::matrices ? k : 3]);
    }
}

template <typename Cell>
static cudaError_t launch_forward(cudaStream_t stream, const bm_lstm_step *s,
                                  const float *recurrent, void *h)
{
    bm_lstm_step of = *s;

    if (s->bf16)
        return BM_LAUNCH(stream, (step_forward<Cell, bm_bf16>),
                         step_grid(s, s->H), step_block, 0, of, recurrent,
                         (bm_bf16 *)h);
    return BM_LAUNCH(stream, (step_forward<Cell, float>), step_grid(s, s->H),
                     step_block, 0, of, recurrent, (float *)h);
}

template <typename Cell>
static cudaError_t launch_backward(cudaStream_t stream, const bm_lstm_step *s,
                                   const float *dh, float *carried,
                                   void *dgates)
{
    bm_lstm_step of = *s;

    if (s->bf16)
        return BM_LAUNCH(stream, (step_backward<Cell, bm_bf16>),
                         step_grid(s, s->H), step_block, 0, of, dh, carried,
                         (bm_bf16 *)dgates);
    return BM_LAUNCH(stream, (step_backward<Cell, float>), step_grid(s, s->H),
                     step_block, 0, of, dh, carried, (float *)dgates);
}

#endif
