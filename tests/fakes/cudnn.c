/*
 * cudnn.c - the functions of cuDNN that the cuda backend calls, for emulated
 * devices: handles and descriptors. Convolutions are in cudnn_conv.c, LSTMs in
 * cudnn_rnn.c: loops in double precision over the tensors of the descriptors,
 * queued on the handle's stream. It rejects what cuDNN's manual says that cuDNN
 * rejects, and some cases that the manual leaves open; a real one may reject
 * more.
 */
#define _GNU_SOURCE /* RTLD_NOLOAD */
#include "tests/fakes/cudnn_parts.h"
#include "tests/fakes/emulated.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cudnnStatus_t refuse(cudnnStatus_t status, const char *why)
{
    if (getenv("BMUF_EMULATED_CUDNN_TELLS") != NULL)
        fprintf(stderr, "emulated cuDNN needs %s\n", why);
    return status;
}

void device_fails(const char *why)
{
    fprintf(stderr, "emulated cuDNN: %s\n", why);
    abort();
}

double load(cudnnDataType_t type, const void *x, size_t i)
{
    uint32_t bits = 0;
    float value = 0;

    if (type == CUDNN_DATA_FLOAT)
        return ((const float *)x)[i];
    bits = (uint32_t)((const uint16_t *)x)[i] << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void store(cudnnDataType_t type, void *x, size_t i, double value)
{
    float rounded = (float)value;
    uint32_t bits = 0;

    if (type == CUDNN_DATA_FLOAT) {
        ((float *)x)[i] = rounded;
        return;
    }
    memcpy(&bits, &rounded, sizeof bits);
    if (isnan(rounded))
        bits |= 0x400000;
    else
        bits += 0x7fff + (bits >> 16 & 1); /* to nearest even */
    ((uint16_t *)x)[i] = (uint16_t)(bits >> 16);
}

void scribble(void *work, size_t bytes)
{
    memset(work, 0xff, bytes);
}

typedef struct queued {
    void (*f)(void *);
    char self[];
} queued;

static void run(void *self)
{
    queued *q = self;

    q->f(q->self);
    free(q);
}

cudnnStatus_t queue(cudnnHandle_t handle, void (*f)(void *), const void *self,
                    size_t size)
{
    int (*launch)(void *, void (*)(void *), void *) = NULL;
    void *symbol = emulated_symbol("cudaLaunchHostFunc");
    queued *q = malloc(sizeof *q + size);

    memcpy(&launch, &symbol, sizeof launch);
    if (launch == NULL || q == NULL) {
        free(q);
        return CUDNN_STATUS_INTERNAL_ERROR;
    }
    q->f = f;
    memcpy(q->self, self, size);
    return launch(handle->stream, run, q) == 0 ? CUDNN_STATUS_SUCCESS
                                               : CUDNN_STATUS_EXECUTION_FAILED;
}

size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_BAD_PARAM       ? "CUDNN_STATUS_BAD_PARAM"
           : status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                                  : "an emulated error";
}

#define MAKE_AND_FREE(what, type)                                              \
    cudnnStatus_t cudnnCreate##what(type *out)                                 \
    {                                                                          \
        NEED_PARAM(out != NULL);                                               \
        *out = calloc(1, sizeof **out);                                        \
        return *out != NULL ? CUDNN_STATUS_SUCCESS                             \
                            : CUDNN_STATUS_ALLOC_FAILED;                       \
    }                                                                          \
    cudnnStatus_t cudnnDestroy##what(type x)                                   \
    {                                                                          \
        free(x);                                                               \
        return CUDNN_STATUS_SUCCESS;                                           \
    }
MAKE_AND_FREE(, cudnnHandle_t)
MAKE_AND_FREE(TensorDescriptor, cudnnTensorDescriptor_t)
MAKE_AND_FREE(FilterDescriptor, cudnnFilterDescriptor_t)
MAKE_AND_FREE(ConvolutionDescriptor, cudnnConvolutionDescriptor_t)
MAKE_AND_FREE(DropoutDescriptor, cudnnDropoutDescriptor_t)
MAKE_AND_FREE(RNNDescriptor, cudnnRNNDescriptor_t)
MAKE_AND_FREE(RNNDataDescriptor, cudnnRNNDataDescriptor_t)

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t t,
                                         cudnnDataType_t type, int n,
                                         const int dim[], const int stride[])
{
    NEED(n >= 3 && n <= DIMS, CUDNN_STATUS_NOT_SUPPORTED);
    *t = (struct cudnnTensorStruct){.type = type, .n = n};
    for (int i = 0; i < n; i++) {
        NEED_PARAM(dim[i] > 0 && stride[i] > 0);
        t->dim[i] = dim[i];
        t->stride[i] = stride[i];
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t t, int most,
                                         cudnnDataType_t *type, int *n,
                                         int dim[], int stride[])
{
    *type = t->type;
    *n = t->n;
    for (int i = 0; i < t->n && i < most; i++) {
        dim[i] = t->dim[i];
        stride[i] = t->stride[i];
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t t,
                                         cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c,
                                         int h, int w)
{
    NEED_PARAM(n > 0 && c > 0 && h > 0 && w > 0);
    NEED((double)n * c * h * w < 2147483648., CUDNN_STATUS_NOT_SUPPORTED);
    *t = (struct cudnnTensorStruct){.type = type,
                                    .n = 4,
                                    .nhwc = format == CUDNN_TENSOR_NHWC,
                                    .dim = {n, c, h, w}};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t d,
                                        cudnnHandle_t handle, float p,
                                        void *states, size_t bytes,
                                        unsigned long long seed)
{
    (void)handle, (void)bytes, (void)seed;
    NEED_PARAM(p == 0 || states != NULL);
    d->p = p;
    return CUDNN_STATUS_SUCCESS;
}
