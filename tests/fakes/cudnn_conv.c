/*
 * cudnn_conv.c - convolutions of the emulated cuDNN: images [N, H, W, C],
 * filters [K, R, S, C], algorithms that have one order of summation.
 */
#include "tests/fakes/cudnn_parts.h"

#include <stdlib.h>

enum { WORK = 1000 }; /* bytes that are requested but not needed */
#define FORWARD CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM
#define TO_X    CUDNN_CONVOLUTION_BWD_DATA_ALGO_1
#define TO_W    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1

/* Calls of the search for algorithms, which is slow in the real library. */
unsigned long bm_fake_cudnn_asked;

typedef struct job {
    struct cudnnTensorStruct x, y;
    struct cudnnFilterStruct w;
    struct cudnnConvolutionStruct conv;
    void *to;
    const void *a, *b; /* the factors */
    void *work;
    float beta;
} job;

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t f,
                                         cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k,
                                         int c, int h, int w)
{
    NEED_PARAM(k > 0 && c > 0 && h > 0 && w > 0);
    *f = (struct cudnnFilterStruct){type, format, {k, c, h, w}};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t conv,
                                              int pad_h, int pad_w,
                                              int stride_h, int stride_w,
                                              int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute)
{
    NEED_PARAM(pad_h >= 0 && pad_w >= 0);
    NEED_PARAM(stride_h > 0 && stride_w > 0);
    NEED_PARAM(dilation_h > 0 && dilation_w > 0);
    *conv = (struct cudnnConvolutionStruct){
        {pad_h, pad_w}, {stride_h, stride_w}, {dilation_h, dilation_w}, mode,
        compute,        CUDNN_DEFAULT_MATH};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t conv,
                                          cudnnMathType_t math)
{
    conv->math = math;
    return CUDNN_STATUS_SUCCESS;
}

static int windows(const struct cudnnConvolutionStruct *conv, int axis, int n,
                   int size)
{
    int span = (size - 1) * conv->dilation[axis] + 1;
    return (n + 2 * conv->pad[axis] - span) / conv->stride[axis] + 1;
}

/* Conditions common to all three passes. */
static cudnnStatus_t check(const struct cudnnTensorStruct *x,
                           const struct cudnnFilterStruct *w,
                           const struct cudnnConvolutionStruct *conv,
                           const struct cudnnTensorStruct *y)
{
    NEED_PARAM(x->n == 4 && y->n == 4);
    NEED_PARAM(x->type == y->type && x->type == w->type);
    NEED_PARAM(x->dim[0] == y->dim[0]);
    NEED_PARAM(x->dim[1] == w->dim[1]);
    NEED_PARAM(y->dim[1] == w->dim[0]);
    for (int i = 0; i < 2; i++)
        NEED_PARAM(y->dim[2 + i] ==
                   windows(conv, i, x->dim[2 + i], w->dim[2 + i]));
    NEED(x->type == CUDNN_DATA_FLOAT || x->type == CUDNN_DATA_BFLOAT16,
         CUDNN_STATUS_NOT_SUPPORTED);
    NEED(x->nhwc && y->nhwc && w->format == CUDNN_TENSOR_NHWC,
         CUDNN_STATUS_NOT_SUPPORTED);
    NEED(conv->compute == CUDNN_DATA_FLOAT, CUDNN_STATUS_NOT_SUPPORTED);
    NEED(conv->mode == CUDNN_CROSS_CORRELATION, CUDNN_STATUS_NOT_SUPPORTED);
    /* correct here, but not reproducible on a device: */
    NEED(conv->math != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION,
         CUDNN_STATUS_NOT_SUPPORTED);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t work_of(const struct cudnnTensorStruct *x,
                             const struct cudnnFilterStruct *w,
                             const struct cudnnConvolutionStruct *conv,
                             const struct cudnnTensorStruct *y, bool known,
                             size_t *bytes)
{
    NEED(known, CUDNN_STATUS_NOT_SUPPORTED);
    *bytes = WORK;
    return check(x, w, conv, y);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y,
    cudnnConvolutionFwdAlgo_t algo, size_t *bytes)
{
    (void)handle;
    bm_fake_cudnn_asked++;
    return work_of(x, w, conv, y, algo == FORWARD, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t algo, size_t *bytes)
{
    (void)handle;
    bm_fake_cudnn_asked++;
    return work_of(dx, w, conv, dy, algo == TO_X, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t conv, cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes)
{
    (void)handle;
    bm_fake_cudnn_asked++;
    return work_of(x, dw, conv, dy, algo == TO_W, bytes);
}

/* Indices of a product: element (n, k, h, w) of y, tap (r, s), channel c. */
typedef struct term {
    size_t x, w, y;
} term;

static size_t count(const int dim[4])
{
    return (size_t)dim[0] * (size_t)dim[1] * (size_t)dim[2] * (size_t)dim[3];
}

/* Index of channel c at a position, channels last. */
static size_t at(const int dim[4], int n, int c, int h, int w)
{
    size_t row = (size_t)n * (size_t)dim[2] + (size_t)h;
    return (row * (size_t)dim[3] + (size_t)w) * (size_t)dim[1] + (size_t)c;
}

/* Calls f for all products whose position is inside the image. */
static void for_each(const job *j, void (*f)(const job *j, term t, double *sum),
                     double *sum)
{
    const int *x = j->x.dim, *w = j->w.dim, *y = j->y.dim;
    const struct cudnnConvolutionStruct *c = &j->conv;

    for (int n = 0; n < y[0]; n++)
        for (int h = 0; h < y[2]; h++)
            for (int v = 0; v < y[3]; v++)
                for (int i = 0; i < w[2] * w[3]; i++) {
                    int r = i / w[3], s = i % w[3];
                    int down =
                        h * c->stride[0] - c->pad[0] + r * c->dilation[0];
                    int right =
                        v * c->stride[1] - c->pad[1] + s * c->dilation[1];
                    term t;

                    if (down < 0 || down >= x[2] || right < 0 || right >= x[3])
                        continue;
                    for (int k = 0; k < w[0]; k++)
                        for (int ch = 0; ch < w[1]; ch++) {
                            t.x = at(x, n, ch, down, right);
                            t.w = at(w, k, ch, r, s);
                            t.y = at(y, n, k, h, v);
                            f(j, t, sum);
                        }
                }
}

static void run(const job *j, const int to[4],
                void (*f)(const job *j, term t, double *sum))
{
    size_t n = count(to);
    double *sum = calloc(n, sizeof *sum);

    if (sum == NULL)
        device_fails("no memory");
    scribble(j->work, WORK);
    for_each(j, f, sum);
    for (size_t i = 0; i < n; i++)
        store(j->x.type, j->to, i,
              sum[i] +
                  (j->beta != 0 ? j->beta * load(j->x.type, j->to, i) : 0));
    free(sum);
}

static void add_to_y(const job *j, term t, double *sum)
{
    sum[t.y] += load(j->x.type, j->a, t.x) * load(j->x.type, j->b, t.w);
}

static void add_to_x(const job *j, term t, double *sum)
{
    sum[t.x] += load(j->x.type, j->a, t.y) * load(j->x.type, j->b, t.w);
}

static void add_to_w(const job *j, term t, double *sum)
{
    sum[t.w] += load(j->x.type, j->a, t.x) * load(j->x.type, j->b, t.y);
}

static void run_forward(void *self)
{
    const job *j = self;
    run(j, j->y.dim, add_to_y);
}

static void run_to_x(void *self)
{
    const job *j = self;
    run(j, j->x.dim, add_to_x);
}

static void run_to_w(void *self)
{
    const job *j = self;
    run(j, j->w.dim, add_to_w);
}

static bool aligned(const void *x)
{
    return x != NULL && (uintptr_t)x % 16 == 0;
}

static cudnnStatus_t start(cudnnHandle_t handle, void (*f)(void *),
                           const float *alpha, const job *j, size_t bytes)
{
    NEED_PARAM(bytes >= WORK && j->work != NULL);
    NEED_PARAM(aligned(j->a) && aligned(j->b) && aligned(j->to));
    NEED(*alpha == 1, CUDNN_STATUS_NOT_SUPPORTED); /* unused by the backend */
    return queue(handle, f, j, sizeof *j);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
                                      cudnnTensorDescriptor_t xd, const void *x,
                                      cudnnFilterDescriptor_t wd, const void *w,
                                      cudnnConvolutionDescriptor_t conv,
                                      cudnnConvolutionFwdAlgo_t algo,
                                      void *work, size_t bytes,
                                      const void *beta,
                                      cudnnTensorDescriptor_t yd, void *y)
{
    job j = {*xd, *yd, *wd, *conv, y, x, w, work, *(const float *)beta};
    size_t least = 0;
    cudnnStatus_t status = work_of(xd, wd, conv, yd, algo == FORWARD, &least);

    return status != CUDNN_STATUS_SUCCESS
               ? status
               : start(handle, run_forward, alpha, &j, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardData(
    cudnnHandle_t handle, const void *alpha, cudnnFilterDescriptor_t wd,
    const void *w, cudnnTensorDescriptor_t yd, const void *dy,
    cudnnConvolutionDescriptor_t conv, cudnnConvolutionBwdDataAlgo_t algo,
    void *work, size_t bytes, const void *beta, cudnnTensorDescriptor_t xd,
    void *dx)
{
    job j = {*xd, *yd, *wd, *conv, dx, dy, w, work, *(const float *)beta};
    size_t least = 0;
    cudnnStatus_t status = work_of(xd, wd, conv, yd, algo == TO_X, &least);

    return status != CUDNN_STATUS_SUCCESS
               ? status
               : start(handle, run_to_x, alpha, &j, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t xd,
    const void *x, cudnnTensorDescriptor_t yd, const void *dy,
    cudnnConvolutionDescriptor_t conv, cudnnConvolutionBwdFilterAlgo_t algo,
    void *work, size_t bytes, const void *beta, cudnnFilterDescriptor_t wd,
    void *dw)
{
    job j = {*xd, *yd, *wd, *conv, dw, x, dy, work, *(const float *)beta};
    size_t least = 0;
    cudnnStatus_t status = work_of(xd, wd, conv, yd, algo == TO_W, &least);

    return status != CUDNN_STATUS_SUCCESS
               ? status
               : start(handle, run_to_w, alpha, &j, bytes);
}
