/*
 * lstm_step_kernels.h - launchers of lstm.cu and gru.cu: one time step, after a
 * product, and copies in another order. Gates, directions and ends of sequences
 * are as in lstm_kernels.h; of a GRU the values r, z, n, q of bm_recurrent are
 * in `gates`, and h in `cells`. S is float, or bf16 if `bf16`.
 */
#ifndef BM_COMPUTE_CUDA_LSTM_LSTM_STEP_KERNELS_H
#define BM_COMPUTE_CUDA_LSTM_LSTM_STEP_KERNELS_H

#include "compute/cuda/kernels/kernels.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What changes from chunk to chunk of time steps. It is on the device. */
typedef struct bm_lstm_place {
    size_t step; /* number of the first step of this chunk */
    size_t T, B;
    const int32_t *frames;  /* [B] */
    void *gates;            /* S [T, B, R, 4, H], as bm_lstm_cluster says */
    float *cells;           /* [T, B, R, H] */
    void *y;                /* S [T, B, R, H]; not used backward */
    const void *dy;         /* S [T, B, R, H]; only backward; may be NULL */
    void *projected;        /* S [T, B, R, P]: y with a projection, whose h is
                              the y above; backward, its gradient, from dy */
    const void *dprojected; /* S [T, B, R, P]: dy with a projection */
} bm_lstm_place;
cudaError_t bm_kernel_lstm_place(cudaStream_t stream, const bm_lstm_place *from,
                                 bm_lstm_place *at);

/* Step at->step + `step` of direction r; a no-op from step T on. The other
 * arrays are those of this direction, for `rows` >= B sequences. */
typedef struct bm_lstm_step {
    size_t rows, H, P, R, r, step;
    bool bf16;
    const void *b; /* S [4, H]: of a GRU */
    const bm_lstm_place *at;
} bm_lstm_step;

/* From wh h of the step before, [rows, 4, H], to h: S [rows, H]. */
cudaError_t bm_kernel_lstm_step(cudaStream_t stream, const bm_lstm_step *s,
                                const float *recurrent, void *h);

/* From dh [rows, H], the gradient of h from the step after, to the gradients of
 * gates, S [rows, 4, H]. dc [rows, H] is kept from step to step. */
cudaError_t bm_kernel_lstm_step_back(cudaStream_t stream, const bm_lstm_step *s,
                                     const float *dh, float *dc, void *dgates);

/* The same of a GRU: from wh h, [rows, 3, H]; to the gradients of wh h, S [rows,
 * 3, H]. past [rows, H] is the part of dh that passes by the gates. */
cudaError_t bm_kernel_gru_step(cudaStream_t stream, const bm_lstm_step *s,
                               const float *recurrent, void *h);
cudaError_t bm_kernel_gru_step_back(cudaStream_t stream, const bm_lstm_step *s,
                                    const float *dh, float *past, void *dgates);

/* With a projection: stores p, S [rows, P], as y of this step. Backward: adds dp
 * [rows, P], the gradient by wh, to that of y, and stores it, also as d, S [rows,
 * P]; zeros past a sequence's end. */
cudaError_t bm_kernel_lstm_project(cudaStream_t stream, const bm_lstm_step *s,
                                   const void *p);
cudaError_t bm_kernel_lstm_project_back(cudaStream_t stream,
                                        const bm_lstm_step *s, const float *dp,
                                        void *d);

/* Copies pieces of n numbers each, from S to floats or to S. */
enum { BM_LSTM_PIECES = 24 };
typedef struct bm_lstm_pieces {
    unsigned count;
    struct {
        const void *from;
        void *to;
        size_t n;
    } of[BM_LSTM_PIECES];
} bm_lstm_pieces;
cudaError_t bm_kernel_lstm_copy(cudaStream_t stream, const bm_lstm_pieces *p,
                                bool bf16, bool to_floats);

/* Copies frames of n numbers, S, each sequence reversed if `turned`:
 * y [T, B, n] = x, or y + x if `adds`; zeros past a sequence's end. */
typedef struct bm_lstm_turn {
    size_t T, B, n;
    const int32_t *frames; /* [B] */
    bool bf16, turned, adds;
    const void *x;
    void *y;
    size_t ld_x, ld_y; /* numbers from one frame of one sequence to the next */
} bm_lstm_turn;
cudaError_t bm_kernel_lstm_turn(cudaStream_t stream, const bm_lstm_turn *t);

#ifdef __cplusplus
}
#endif
#endif
