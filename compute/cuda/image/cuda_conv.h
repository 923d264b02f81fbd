/*
 * cuda_conv.h - engines of the convolution: each computes it as backend.h says.
 * Which of them does is chosen by timing, see cuda_choice.h; BMUF_CONV names
 * one for all.
 */
#ifndef BM_COMPUTE_CUDA_IMAGE_CUDA_CONV_H
#define BM_COMPUTE_CUDA_IMAGE_CUDA_CONV_H

#include "compute/cuda/cuda.h"

typedef struct bm_conv_engine {
    const char *name;
    /* What keeps it from such a layer and batch; NULL: nothing. NULL instead of
     * a function: nothing ever does. */
    const char *(*obstacle)(bm_backend *be, const bm_conv *c, bm_extent in,
                            bm_extent out);
    /* As in backend.h; `work` is for im2col. */
    void (*forward)(bm_backend *be, const bm_conv *c, bm_extent in,
                    bm_extent out, const float *x, float *y, float *work);
    void (*backward)(bm_backend *be, const bm_conv *c, bm_extent in,
                     bm_extent out, const float *x, const float *dy,
                     float *work, float *dx, float *dw, float *db);
} bm_conv_engine;

/* The first one can everything, and is taken where there are no frames. */
#define BM_CONV_ENGINES(X) X(im2col) X(cudnn)
#define X(name)            extern const bm_conv_engine bm_conv_engine_##name;
BM_CONV_ENGINES(X)
#undef X

size_t bm_conv_im2col_work(bm_backend *be, const bm_conv *c);

#endif
