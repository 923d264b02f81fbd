/*
 * convolution.h - convolution with an impulse response, by FFT and overlap-add.
 */
#ifndef BM_IO_SOUND_CONVOLUTION_H
#define BM_IO_SOUND_CONVOLUTION_H

#include "core/status.h"

#include <stddef.h>

enum { BM_MOST_TAPS = 1 << 24 };

/* Transforms and memory that are reused. */
typedef struct bm_convolver bm_convolver;

/* Fails with BM_ERR_MEMORY. Free with bm_convolver_free; NULL is a no-op. */
BM_CHECKED bm_status bm_convolver_new(bm_convolver **out);
void bm_convolver_free(bm_convolver *c);

/* x [n] <- y[shift], .. y[shift + n - 1] of y[t] = sum_k h[k] x[t - k], with h
 * [taps], shift < taps <= BM_MOST_TAPS. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_convolve(bm_convolver *c, const float *h, size_t taps,
                                 size_t shift, float *x, size_t n);

#endif
