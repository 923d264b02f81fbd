/*
 * cuda_cudnn.h - LSTMs and convolutions of cuDNN, if the machine has it: a
 * library that is looked for by name, and descriptors that are made once.
 *
 * Whatever fails is told, and nothing of cuDNN is called after a start that
 * failed.
 */
#ifndef BM_COMPUTE_CUDA_CUDA_CUDNN_H
#define BM_COMPUTE_CUDA_CUDA_CUDNN_H

#include "compute/cuda/lstm/cuda_lstm.h"

#include <cudnn.h>

#define BM_CUDNN_FUNCTIONS(X)                                                  \
    X(GetVersion)                                                              \
    X(GetErrorString)                                                          \
    X(Create)                                                                  \
    X(Destroy)                                                                 \
    X(SetStream)                                                               \
    X(CreateTensorDescriptor)                                                  \
    X(DestroyTensorDescriptor)                                                 \
    X(SetTensorNdDescriptor)                                                   \
    X(GetTensorNdDescriptor)                                                   \
    X(CreateDropoutDescriptor)                                                 \
    X(DestroyDropoutDescriptor)                                                \
    X(SetDropoutDescriptor)                                                    \
    X(CreateRNNDescriptor)                                                     \
    X(DestroyRNNDescriptor)                                                    \
    X(SetRNNDescriptor_v8)                                                     \
    X(CreateRNNDataDescriptor)                                                 \
    X(DestroyRNNDataDescriptor)                                                \
    X(SetRNNDataDescriptor)                                                    \
    X(GetRNNWeightSpaceSize)                                                   \
    X(GetRNNWeightParams)                                                      \
    X(GetRNNTempSpaceSizes)                                                    \
    X(RNNForward)                                                              \
    X(RNNBackwardData_v8)                                                      \
    X(RNNBackwardWeights_v8)                                                   \
    X(SetTensor4dDescriptor)                                                   \
    X(CreateFilterDescriptor)                                                  \
    X(DestroyFilterDescriptor)                                                 \
    X(SetFilter4dDescriptor)                                                   \
    X(CreateConvolutionDescriptor)                                             \
    X(DestroyConvolutionDescriptor)                                            \
    X(SetConvolution2dDescriptor)                                              \
    X(SetConvolutionMathType)                                                  \
    X(GetConvolutionForwardWorkspaceSize)                                      \
    X(GetConvolutionBackwardDataWorkspaceSize)                                 \
    X(GetConvolutionBackwardFilterWorkspaceSize)                               \
    X(ConvolutionForward)                                                      \
    X(ConvolutionBackwardData)                                                 \
    X(ConvolutionBackwardFilter)

/* Memory of the device that grows and is used again by the next call. */
typedef struct bm_cudnn_room {
    void *x;
    size_t bytes;
} bm_cudnn_room;

/* A kind of layer: of R directions. */
typedef struct bm_cudnn_layer {
    cudnnRNNAlgo_t algorithm;
    bm_precision precision;
    size_t D, H, R;
    char why[256]; /* why it cannot be; "": it can */
    cudnnRNNDescriptor_t rnn;
    size_t weights;       /* bytes of its weight space */
    size_t begins[2][12]; /* there: bytes before the eight matrices (wx of i, f,
                             g, o, then wh) and four biases of a direction */
    struct bm_cudnn_layer *next;
} bm_cudnn_layer;

/* Bytes that convolutions of a kind work in. */
typedef struct bm_cudnn_need {
    size_t kind[16]; /* all that they depend on */
    size_t bytes;
    struct bm_cudnn_need *next;
} bm_cudnn_need;

struct bm_cudnn {
    char why[256]; /* why there is none; "": there is one */
    void *library;
    cudnnHandle_t handles[2]; /* for `stream`, for `side` */
    cudnnDropoutDescriptor_t no_dropout;
    cudnnTensorDescriptor_t state, matrix, bias;
    cudnnRNNDataDescriptor_t x, y;
    bm_cudnn_layer *layers;
    int32_t *full; /* [n_full] of the host: lengths without padding */
    size_t n_full;
    bm_cudnn_room work[2];             /* of each handle */
    bm_cudnn_room dweights;            /* of `side` */
    bm_cudnn_room dx[2], dy[2];        /* of each direction */
    cudnnTensorDescriptor_t images[2]; /* of convolutions: x, y */
    cudnnFilterDescriptor_t filter;
    cudnnConvolutionDescriptor_t conv;
    char why_conv[256];
    bm_cudnn_need *needs;
    bm_cudnn_room image[2], kernel, sums; /* of them, on `stream` */
#define X(name) __typeof__(cudnn##name) *name;
    BM_CUDNN_FUNCTIONS(X)
#undef X
};

/* Opened at the first call. NULL, and the reason in *why, if there is none. */
struct bm_cudnn *bm_cudnn_of(bm_backend *be, const char **why);

/* That of such layers, in the backend's precision, likewise. */
const bm_cudnn_layer *bm_cudnn_layer_of(bm_backend *be, cudnnRNNAlgo_t algo,
                                        size_t D, size_t H, size_t R,
                                        const char **why);

/* What they compute in: the backend's precision. Tensor cores take bf16, and
 * floats as TF32 where that was asked for. */
cudnnDataType_t bm_cudnn_type(bm_precision precision);
cudnnMathType_t bm_cudnn_math(bm_precision precision);

/* Did it go well? If not, says why. */
bool bm_cudnn_well(const struct bm_cudnn *c, cudnnStatus_t status,
                   const char *what, char *why, size_t room);

/* At least so many bytes; NULL after a failure. */
void *bm_cudnn_room_for(bm_backend *be, bm_cudnn_room *r, size_t bytes);

/* For queued calls, which no graph has: cuDNN may do anything. */
void bm_cudnn_note(bm_backend *be, cudnnStatus_t status, const char *what);
#define BM_CUDNN(be, call)                                                     \
    do {                                                                       \
        bm_step_leave(be);                                                     \
        if ((be)->failed == BM_OK)                                             \
            bm_cudnn_note((be), bm_cuda_of(be)->cudnn->call, #call);           \
    } while (0)

/* One layer at work on T frames of B sequences: `frames` of the host say how
 * long they are, `lengths` on the device the same. All in S. */
typedef struct bm_cudnn_pass {
    const bm_cudnn_layer *layer;
    size_t T, B;
    const int32_t *frames, *lengths;
    void *weights; /* in cuDNN's order, layer->weights bytes */
    void *reserve;
} bm_cudnn_pass;

/* Bytes of `reserve`, a multiple of 256 like the next. */
size_t bm_cudnn_reserve(bm_backend *be, const bm_cudnn_pass *p);
static inline size_t bm_cudnn_lines(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Weights [.. R 4 H ..] into the pass's order, and gradients, out of
 * room `dweights`, into floats: of direction `first` and those after it. */
void bm_cudnn_pack(bm_backend *be, const bm_cudnn_pass *p, size_t first,
                   const void *wx, const void *wh, const void *b);
void bm_cudnn_unpack(bm_backend *be, const bm_cudnn_pass *p, size_t first,
                     float *dwx, float *dwh, float *db);

void bm_cudnn_forward(bm_backend *be, const bm_cudnn_pass *p, const void *x,
                      void *y);
void bm_cudnn_backward(bm_backend *be, const bm_cudnn_pass *p, const void *y,
                       const void *dy, void *dx);
/* On `side`, into room `dweights`. */
void bm_cudnn_gradient(bm_backend *be, const bm_cudnn_pass *p, const void *x,
                       const void *y);

#endif
