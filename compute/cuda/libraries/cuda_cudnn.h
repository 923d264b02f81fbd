/*
 * cuda_cudnn.h - cuDNN, if the machine has it: loads the library by name and
 * opens descriptors once, for LSTMs (cuda_cudnn_rnn.h) and convolutions.
 *
 * If loading or opening fails, bm_cudnn_of gives the reason, and no other
 * function here may be called.
 */
#ifndef BM_COMPUTE_CUDA_LIBRARIES_CUDA_CUDNN_H
#define BM_COMPUTE_CUDA_LIBRARIES_CUDA_CUDNN_H

#include "compute/cuda/device/cuda_context.h"

#include <cudnn.h>

#define BM_CUDNN_FUNCTIONS(X)                                                  \
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

/* A kind of LSTM layer, of R directions. */
typedef struct bm_cudnn_layer {
    cudnnRNNAlgo_t algorithm;
    bm_precision precision;
    size_t D, H, R;
    char why[256]; /* why cuDNN cannot compute it; "": it can */
    cudnnRNNDescriptor_t rnn;
    size_t weights;       /* bytes of its weight space */
    size_t begins[2][12]; /* offsets there, in bytes, of the eight matrices (wx
                             of i, f, g, o, then wh) and four biases of a
                             direction */
    struct bm_cudnn_layer *next;
} bm_cudnn_layer;

/* The workspace of a kind of convolution. */
typedef struct bm_cudnn_need {
    size_t kind[16]; /* all that it depends on */
    size_t bytes;
    struct bm_cudnn_need *next;
} bm_cudnn_need;

typedef struct bm_cudnn {
    char why[256]; /* why it cannot be used; "": it can */
    void *library;
    cudnnHandle_t handles[2]; /* for `stream`, for `side` */
    cudnnDropoutDescriptor_t no_dropout;
    cudnnTensorDescriptor_t state, matrix, bias;
    cudnnRNNDataDescriptor_t x, y;
    bm_cudnn_layer *layers;
    int32_t *full; /* [n_full] of the host: lengths without padding */
    size_t n_full;
    bm_cuda_room work[2];              /* of each handle */
    bm_cuda_room dweights;             /* of `side` */
    bm_cuda_room dx[2], dy[2];         /* of each direction */
    cudnnTensorDescriptor_t images[2]; /* of convolutions: x, y */
    cudnnFilterDescriptor_t filter;
    cudnnConvolutionDescriptor_t conv;
    char why_conv[256];
    bm_cudnn_need *needs;
    bm_cuda_room image[2], kernel, sums; /* of them, on `stream` */
#define X(name) __typeof__(cudnn##name) *name;
    BM_CUDNN_FUNCTIONS(X)
#undef X
} bm_cudnn;

/* cuDNN, loaded and opened by the first call. NULL, and the reason in *why, if
 * the machine has none or it fails. */
bm_cudnn *bm_cudnn_of(bm_backend *be, const char **why);

/* The type of numbers, and the mathematics of products, in this precision:
 * tensor cores take bf16, and floats as TF32. */
cudnnDataType_t bm_cudnn_type(bm_precision precision);
cudnnMathType_t bm_cudnn_math(bm_precision precision);

/* True if the status is a success; else writes the reason to why [room]. */
bool bm_cudnn_well(const bm_cudnn *c, cudnnStatus_t status, const char *what,
                   char *why, size_t room);
#define BM_CUDNN_WELL(c, why, call)                                            \
    bm_cudnn_well((c), (c)->call, #call, (why), sizeof(why))

/* For queued calls, which cannot return a status: BM_ERR_DEVICE. */
void bm_cudnn_note(bm_backend *be, cudnnStatus_t status, const char *what);
#define BM_CUDNN(be, call)                                                     \
    do {                                                                       \
        if ((be)->failed == BM_OK)                                             \
            bm_cudnn_note((be), bm_cuda_of(be)->cudnn->call, #call);           \
    } while (0)

/* Rounds up to whole lines of 256 bytes. */
static inline size_t bm_cudnn_lines(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

#endif
