/*
 * cpu_image_loops.h - the loops of convolution, pooling and batch
 * normalisation; cpu_isa.h says how they are compiled and chosen.
 */
#ifndef BM_COMPUTE_CPU_LOOPS_CPU_IMAGE_LOOPS_H
#define BM_COMPUTE_CPU_LOOPS_CPU_IMAGE_LOOPS_H

#include "core/isa.h"

#include <stddef.h>
#include <stdint.h>

typedef struct bm_conv_loops {
    /* w [k, n] for convolve: bm_packed(k, n) floats at most. */
    void (*pack)(size_t k, size_t n, const float *w, float *packed);

    /* y [m, n] = b + the sum over i < taps of A_i W_i. A_i [m, k] begins at
     * a + i tap; its rows begin lda apart and may lie over one another. W
     * [taps, k, n] is packed, and b ends with zeros up to bm_packed(1, n). */
    void (*convolve)(size_t m, size_t n, size_t taps, size_t k, const float *a,
                     size_t tap, size_t lda, const float *packed,
                     const float *b, float *y);

    /* c [m, n] += the sum over f < frames of A_f' B_f, with A_f [rows, m] at
     * a + f a_frame and rows lda apart, B_f [rows, n] at b + f b_frame. */
    void (*correlate)(size_t frames, size_t rows, size_t m, size_t n,
                      const float *a, size_t a_frame, size_t lda,
                      const float *b, size_t b_frame, float *c);
} bm_conv_loops;

/* Windows below one another: `rows` rows of `channels` floats, of `frames`
 * frames that begin `apart` floats from each other. */
typedef struct bm_blocks {
    size_t count, frames, rows, channels, apart;
} bm_blocks;

/* The same bits for every instruction set. x, y and z [rows, n] are contiguous;
 * sums are added to. */
typedef struct bm_image_loops {
    /* x -> y [count, channels], the largest of each block; a number that is
     * none is larger than any. */
    void (*largest)(const bm_blocks *b, const float *x, float *y);
    /* dx = dy at the first place of a block where x = y, else 0. */
    void (*largest_back)(const bm_blocks *b, const float *x, const float *y,
                         const float *dy, float *dx);

    /*
     * The same of a window's frames one by one, which have x [count, rows, n]
     * each: y [count, n] becomes the largest, and place its number in the
     * window. Those of this frame begin with `first`; 0: nothing was before.
     */
    void (*raise)(size_t count, size_t rows, size_t n, int32_t first,
                  const float *x, float *y, int32_t *place);
    /* dx = dy at the place, else 0. */
    void (*lower)(size_t count, size_t rows, size_t n, int32_t first,
                  const int32_t *place, const float *dy, float *dx);

    /* Sums of (x - center)^2. */
    void (*squares)(size_t rows, size_t n, const float *x, const float *center,
                    float *sum);
    /* y = a (x - center) + b */
    void (*scale)(size_t rows, size_t n, const float *a, const float *center,
                  const float *b, const float *x, float *y);
    /* Of dy, and of dy (x - center). */
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
