/* step.h - what the kernels of one time step share: lstm.cu, gru.cu, project.cu. */
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

#endif
