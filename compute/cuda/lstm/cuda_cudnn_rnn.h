/*
 * cuda_cudnn_rnn.h - LSTM layers of cuDNN, for the engines cudnn and persist.
 * S is float, or bf16 with BM_BF16.
 */
#ifndef BM_COMPUTE_CUDA_LSTM_CUDA_CUDNN_RNN_H
#define BM_COMPUTE_CUDA_LSTM_CUDA_CUDNN_RNN_H

#include "compute/cuda/libraries/cuda_cudnn.h"
#include "compute/cuda/lstm/cuda_lstm.h"

/* The layer of such a kind in the backend's precision, made by the first call.
 * NULL, and the reason in *why, if cuDNN cannot compute it. */
const bm_cudnn_layer *bm_cudnn_layer_of(bm_backend *be, cudnnRNNAlgo_t algo,
                                        size_t D, size_t H, size_t R,
                                        const char **why);

/* One layer on T frames of B sequences. All vectors are S. */
typedef struct bm_cudnn_pass {
    const bm_cudnn_layer *layer;
    size_t T, B;
    const int32_t *frames;  /* [B], on the host: lengths */
    const int32_t *lengths; /* [B], the same on the device */
    void *weights;          /* in cuDNN's order, layer->weights bytes */
    void *reserve;
} bm_cudnn_pass;

/* Bytes of `reserve`, a multiple of 256. */
size_t bm_cudnn_reserve(bm_backend *be, const bm_cudnn_pass *p);

/* Copies weights S [.. R, 4, H ..], from direction `first` on, to p->weights;
 * and gradients from the room `dweights` to floats. */
void bm_cudnn_pack(bm_backend *be, const bm_cudnn_pass *p, size_t first,
                   const void *wx, const void *wh, const void *b);
void bm_cudnn_unpack(bm_backend *be, const bm_cudnn_pass *p, size_t first,
                     float *dwx, float *dwh, float *db);

void bm_cudnn_forward(bm_backend *be, const bm_cudnn_pass *p, const void *x,
                      void *y);
void bm_cudnn_backward(bm_backend *be, const bm_cudnn_pass *p, const void *y,
                       const void *dy, void *dx);
/* On `side`, into the room `dweights`. */
void bm_cudnn_gradient(bm_backend *be, const bm_cudnn_pass *p, const void *x,
                       const void *y);

#endif
