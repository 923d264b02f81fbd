/*
 * cuda_conv.h - engines of the convolution: each computes it as backend.h says.
 * The first one computes every convolution, unless BMUF_CONV names another.
 */
#ifndef BM_COMPUTE_CUDA_IMAGE_CUDA_CONV_H
#define BM_COMPUTE_CUDA_IMAGE_CUDA_CONV_H

#include "compute/cuda/device/cuda_context.h"

typedef struct bm_conv_engine {
    const char *name;
    /* Returns why the engine cannot compute such a layer and batch, or NULL if
     * it can. NULL instead of a function: it can compute all. */
    const char *(*obstacle)(bm_backend *be, const bm_conv *c, bm_extent in,
                            bm_extent out);
    /* As in backend.h; `work` is for im2col. */
    void (*forward)(bm_backend *be, const bm_conv *c, bm_extent in,
                    bm_extent out, const float *x, float *y, float *work);
    void (*backward)(bm_backend *be, const bm_conv *c, bm_extent in,
                     bm_extent out, const float *x, const float *dy,
                     float *work, float *dx, float *dw, float *db);
} bm_conv_engine;

/* The first one also takes batches without frames. */
#define BM_CONV_ENGINES(X) X(im2col) X(cudnn)
#define X(name)            extern const bm_conv_engine bm_conv_engine_##name;
BM_CONV_ENGINES(X)
#undef X

/* BM_ERR_CONFIG: an invalid BMUF_CONV. */
BM_CHECKED bm_status bm_cuda_conv_open(bm_backend *be);

/* Floats of `work` for im2col. */
size_t bm_conv_im2col_work(bm_backend *be, const bm_conv *c);

#endif
