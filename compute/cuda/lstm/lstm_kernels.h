/*
 * lstm_kernels.h - launchers of the recurrence of an LSTM, like kernels.h.
 *
 * The order of gates is i, f, g, o. Direction 1 runs from the last frame to the
 * first. Past a sequence's end h, c, y and the gradients of gates are zero in
 * both directions, so that direction 1 starts with zeros at each sequence's
 * last frame.
 */
#ifndef BM_COMPUTE_CUDA_LSTM_LSTM_KERNELS_H
#define BM_COMPUTE_CUDA_LSTM_LSTM_KERNELS_H

#include "compute/cuda/kernels/kernels.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All time steps of all directions in one kernel, in bf16 with sums in fp32.
 * gates and cells are aligned to 16 bytes; R is 1 or 2. */
typedef struct bm_lstm_cluster {
    size_t T, B, H, R;
    const int32_t *frames; /* [B] */
    const bm_bf16 *wh;     /* [R, 4 H, H] */
    bm_bf16 *gates;        /* [T, B, R, 4, H]: before, wx x + b; after, i f g o;
                              backward: before, i f g o; after, the gradients
                              with respect to wx x + wh h + b */
    bm_bf16 *y;            /* [T, B, R, H]; not used backward */
    float *cells;          /* [T, B, R, H]: c */
    const bm_bf16 *dy;     /* [T, B, R, H], only backward */
} bm_lstm_cluster;

/* How many tiles of eight sequences each cluster takes of B in R directions, if
 * at_once[i] clusters with i + 1 tiles run at once; at_once[i] = 0: they do not
 * fit. */
int bm_lstm_cluster_tiles(const int at_once[], int n, size_t B, size_t R);

/* *out: whether a device of compute capability `major` can run the kernels for
 * hidden size H: a multiple of 8 up to 512, and room for a cluster. An error is
 * one of earlier work. */
cudaError_t bm_kernel_lstm_cluster_fits(int major, size_t H, bool *out);
cudaError_t bm_kernel_lstm_cluster_forward(cudaStream_t stream,
                                           const bm_lstm_cluster *l);
cudaError_t bm_kernel_lstm_cluster_backward(cudaStream_t stream,
                                            const bm_lstm_cluster *l);

#ifdef __cplusplus
}
#endif
#endif
