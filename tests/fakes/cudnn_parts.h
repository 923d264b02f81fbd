/* cudnn_parts.h - internal to the emulated cuDNN, see cudnn.c. */
#ifndef BM_TESTS_FAKES_CUDNN_PARTS_H
#define BM_TESTS_FAKES_CUDNN_PARTS_H

#include <cudnn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DIMS = 8, MOST_SEQUENCES = 256 };

struct cudnnContext {
    void *stream;
};

struct cudnnTensorStruct {
    cudnnDataType_t type;
    bool nhwc; /* fully packed */
    int n, dim[DIMS], stride[DIMS];
};

struct cudnnFilterStruct {
    cudnnDataType_t type;
    cudnnTensorFormat_t format;
    int dim[4];
};

struct cudnnConvolutionStruct {
    int pad[2], stride[2], dilation[2];
    cudnnConvolutionMode_t mode;
    cudnnDataType_t compute;
    cudnnMathType_t math;
};

struct cudnnDropoutStruct {
    float p;
};

struct cudnnRNNDataStruct {
    cudnnDataType_t type;
    int T, B, size;
    int lengths[MOST_SEQUENCES];
    bool fills;
};

struct cudnnRNNStruct {
    cudnnRNNAlgo_t algorithm;
    cudnnDataType_t type;
    int D, H, R;
    bool padded;
};

/* Returns `status`; prints the violated rule if BMUF_EMULATED_CUDNN_TELLS is
 * set. */
cudnnStatus_t refuse(cudnnStatus_t status, const char *why);
#define NEED(condition, status)                                                \
    do {                                                                       \
        if (!(condition))                                                      \
            return refuse((status), #condition);                               \
    } while (0)
#define NEED_PARAM(condition) NEED(condition, CUDNN_STATUS_BAD_PARAM)

/* Queues f with a copy of `size` bytes of self on the handle's stream. */
cudnnStatus_t queue(cudnnHandle_t handle, void (*f)(void *), const void *self,
                    size_t size);

/* Prints why and aborts: an error on the device. */
_Noreturn void device_fails(const char *why);

/* Number i of an array of floats or bf16. */
double load(cudnnDataType_t type, const void *x, size_t i);
void store(cudnnDataType_t type, void *x, size_t i, double value);
static inline size_t size_of(cudnnDataType_t type)
{
    return type == CUDNN_DATA_FLOAT ? 4 : 2;
}

/* Fills memory with NaN, so that reading it is noticed. */
void scribble(void *work, size_t bytes);

#endif
