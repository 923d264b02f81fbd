/*
 * cpu_image_loops.h - the loops of convolution, pooling and batch
 * normalisation; cpu_isa.h describes how they are compiled and chosen.
 */
#ifndef BM_COMPUTE_CPU_LOOPS_CPU_IMAGE_LOOPS_H
#define BM_COMPUTE_CPU_LOOPS_CPU_IMAGE_LOOPS_H

#include "core/isa.h"

#include <stddef.h>
#include <stdint.h>

/* What windows read: frames x rows runs of n floats. Runs of a frame are `row`
 * floats apart, and frames `frame` floats. */
typedef struct bm_taps {
    size_t frames, rows, n;
    size_t frame, row;
} bm_taps;

typedef struct bm_conv_loops {
    /* Packs w [k, n] for convolve: at most bm_packed(k, n) floats. */
    void (*pack)(size_t k, size_t n, const float *w, float *packed);

    /* y [m, n] = b + A W. The rows of A are windows, which begin lda floats
     * apart from a on and may overlap. W is packed, and b is padded with zeros
     * up to bm_packed(1, n). */
    void (*convolve)(size_t m, size_t n, const bm_taps *taps, const float *a,
                     size_t lda, const float *packed, const float *b, float *y);

    /* c [m, n] += the sum over f < frames of A_f' B_f, with A_f [rows, m] at
     * a + f a_frame and rows lda apart, B_f [rows, n] at b + f b_frame. */
    void (*correlate)(size_t frames, size_t rows, size_t m, size_t n,
                      const float *a, size_t a_frame, size_t lda,
                      const float *b, size_t b_frame, float *c);
} bm_conv_loops;

/* `count` windows, one below the other: each has `rows` rows of `channels`
 * floats in `frames` frames, which are `apart` floats from each other. */
typedef struct bm_blocks {
    size_t count, frames, rows, channels, apart;
} bm_blocks;

/* The bits are the same for every instruction set. Matrices [rows, n] are
 * contiguous; sums are added to. */
typedef struct bm_image_loops {
    /* y [count, channels] = the maximum of each window of x; NaN if it has one.
     */
    void (*largest)(const bm_blocks *b, const float *x, float *y);
    /* dx = dy at the first place of a window where x = y, else 0. */
    void (*largest_back)(const bm_blocks *b, const float *x, const float *y,
                         const float *dy, float *dx);

    /* Of a single window, which may overlap others: dx += dy at the first place
     * where x = y. */
    void (*largest_add)(const bm_blocks *b, const float *x, const float *y,
                        const float *dy, float *dx);
    /* Of a single window: y = its mean; dx += dy divided by its places. */
    void (*average)(const bm_blocks *b, const float *x, float *y);
    void (*average_add)(const bm_blocks *b, const float *dy, float *dx);

    /*
     * As the first two, one frame of the windows at a time, x [count, rows, n]: y
     * [count, n] becomes the maximum so far, and place its position in the
     * window. The frame's positions start at `first`; 0: the first frame.
     */
    void (*raise)(size_t count, size_t rows, size_t n, int32_t first,
                  const float *x, float *y, int32_t *place);
    /* dx = dy at that position, else 0. */
    void (*lower)(size_t count, size_t rows, size_t n, int32_t first,
                  const int32_t *place, const float *dy, float *dx);

    /* sum += (x - center)^2 */
    void (*squares)(size_t rows, size_t n, const float *x, const float *center,
                    float *sum);
    /* y = a (x - center) + b */
    void (*scale)(size_t rows, size_t n, const float *a, const float *center,
                  const float *b, const float *x, float *y);
    /* sum += dy, product += dy (x - center) */
    void (*products)(size_t rows, size_t n, const float *dy, const float *x,
                     const float *center, float *sum, float *product);
    /* dx = a dy + b (x - center) + c */
    void (*mix)(size_t rows, size_t n, const float *a, const float *b,
                const float *center, const float *c, const float *dy,
                const float *x, float *dx);
} bm_image_loops;

#define X(isa)                                                                 \
    extern const bm_conv_loops bm_conv_loops_##isa;                            \
    extern const bm_image_loops bm_image_loops_##isa;
BM_ISAS(X)
#undef X

#endif
