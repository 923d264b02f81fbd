/*
 * image_kernels.h - launchers for columns of pixels, like kernels.h: copies for
 * convolutions, pooling, batch normalisation.
 *
 * x [T, B, H, C] has channels last. Past a sequence's end nothing is read, and
 * zeros are written.
 */
#ifndef BM_COMPUTE_CUDA_IMAGE_IMAGE_KERNELS_H
#define BM_COMPUTE_CUDA_IMAGE_IMAGE_KERNELS_H

#include "compute/cuda/kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* conv.cu */

/* Windows along an axis whose places are `apart` from each other, with zeros
 * between. Window i begins at i stride - before; its `size` taps are `dilation`
 * from each other. */
typedef struct bm_axis_windows {
    unsigned size, stride, before, apart, dilation;
} bm_axis_windows;

/*
 * Windows side by side: the rows of a matrix [T', B, H', width]. A row is
 *
 *     time.size x rows.size x C numbers of x, a one if `ones`, zeros
 *
 * or only zeros past a sequence's end. The matrix and each row begin at
 * multiples of BM_GATHER_UNIT bytes.
 */
typedef struct bm_gather {
    size_t B;
    const int32_t *in, *out; /* [B]: frames */
    unsigned height, channels, out_height, width;
    bm_axis_windows time, rows;
    bool ones;
} bm_gather;
enum { BM_GATHER_UNIT = 16 };

/* Writes n frames of the matrix, from frame `first` on. x and the matrix have
 * the same form. */
cudaError_t bm_kernel_gather(cudaStream_t stream, const bm_gather *g,
                             size_t first, size_t n, bm_in x, void *matrix);

/* The factor of such rows: w [time, rows, C, N], then b [N] unless NULL, then
 * zeros, n_rows in all. Turned: w reversed in time and rows, [time, rows, N,
 * C]. */
typedef struct bm_kernel_of_conv {
    unsigned time, rows, channels, out_channels;
    const float *w, *b; /* b may be NULL */
    bool turned;
} bm_kernel_of_conv;
cudaError_t bm_kernel_pack(cudaStream_t stream, const bm_kernel_of_conv *c,
                           size_t n_rows, bm_out out);

/* conv_packed.cu */

/* A layout of images: pixel (t, h) of sequence b has C numbers, from
 * t frame + b sequence + h C on. */
typedef struct bm_images {
    unsigned T, H, C;
    size_t frame, sequence;
} bm_images;

/*
 * Copies images from one layout to another in the same form: place (t, h) of y
 * is place (t + ahead, h + below) of x, plus `bias`; or zeros outside of x,
 * past the end of its sequence or of y's, and in channels that x lacks.
 */
typedef struct bm_image_copy {
    size_t B;
    bm_images x, y;
    int ahead, below;
    const int32_t *x_frames, *y_frames; /* [B]; NULL: all T */
    const float *bias;                  /* [x.C]; may be NULL */
} bm_image_copy;
cudaError_t bm_kernel_layout(cudaStream_t stream, const bm_image_copy *l,
                             bm_in x, bm_out y);

/* Packs w [places, channels, out_channels] to `packed` [n, places, c], padded
 * with zeros. Unpacks: w = packed, or w + packed. */
typedef struct bm_filter_layout {
    unsigned places, channels, out_channels, c, n;
} bm_filter_layout;
cudaError_t bm_kernel_filter_pack(cudaStream_t stream,
                                  const bm_filter_layout *f, const float *w,
                                  bm_out packed);
cudaError_t bm_kernel_filter_unpack(cudaStream_t stream,
                                    const bm_filter_layout *f, bm_in packed,
                                    bool adds, float *w);

/* windows.cu */

/* The maximum or mean of windows, which may overlap, over x [T, B, H, C]. */
typedef struct bm_sliding {
    size_t T, B;             /* of x */
    const int32_t *in, *out; /* [B]: frames of x and of windows */
    unsigned height, channels, out_frames, out_height;
    bm_axis_windows time, rows;
    bool mean;
} bm_sliding;

cudaError_t bm_kernel_sliding_forward(cudaStream_t stream, const bm_sliding *s,
                                      bm_in x, bm_out y);
cudaError_t bm_kernel_sliding_backward(cudaStream_t stream, const bm_sliding *s,
                                       bm_in x, bm_in dy, bm_out dx);

/* image.cu */

/* Windows of `time` frames and `rows` rows over x, side by side; the last ones
 * may be smaller: [T', B, H']. */
typedef struct bm_panes {
    size_t T, B;             /* of x */
    const int32_t *in, *out; /* [B]: frames of x and of windows */
    unsigned height, channels, out_frames, out_height;
    unsigned time, rows;
} bm_panes;

cudaError_t bm_kernel_pooling_forward(cudaStream_t stream, const bm_panes *p,
                                      bm_in x, bm_out y);
cudaError_t bm_kernel_pooling_backward(cudaStream_t stream, const bm_panes *p,
                                       bm_in x, bm_in dy, bm_out dx);

/* Batch normalisation, then the activation f, then the maximum of each window.
 * A launcher reads only the fields that it needs. */
typedef struct bm_norm_pass {
    bm_panes panes;
    bm_activation f;
    double positions; /* of all frames but padding */
    const float *gamma, *beta, *mean, *var;
    double *moments; /* [2, C]: of the batch */
    double *partial; /* [BM_STRIPES, 2, C] */
    float *factors;  /* [5, C] */
    bm_in x, dy;
    bm_out y, dx;
    float *dgamma, *dbeta, *mean_off, *var_off; /* [C] */
} bm_norm_pass;
enum { BM_STRIPES = 512, BM_FACTORS = 5 };

/* Compute factors: from the batch, or from `mean` and `var`. */
cudaError_t bm_kernel_norm_measure(cudaStream_t stream, const bm_norm_pass *p);
cudaError_t bm_kernel_norm_given(cudaStream_t stream, const bm_norm_pass *p);
cudaError_t bm_kernel_norm_forward(cudaStream_t stream, const bm_norm_pass *p);
/* All gradients but dx; then dx. */
cudaError_t bm_kernel_norm_slopes(cudaStream_t stream, const bm_norm_pass *p);
cudaError_t bm_kernel_norm_backward(cudaStream_t stream, const bm_norm_pass *p);

#ifdef __cplusplus
}
#endif
#endif
