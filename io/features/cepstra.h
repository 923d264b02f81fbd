/*
 * cepstra.h - mel-frequency cepstral coefficients (MFCC) of log mel energies, as
 * Kaldi defines them (feat/feature-mfcc). With M bands x_m, m = 0 .. M - 1:
 *
 *     c_k = l_k s_k sum over m of x_m cos(pi k (m + 1/2) / M), k = 0 .. n - 1
 *     s_0 = sqrt(1 / M), s_k = sqrt(2 / M): the orthonormal DCT-II
 *     l_k = 1 + (Q / 2) sin(pi k / Q), Q = 22: the lifter
 */
#ifndef BM_IO_FEATURES_CEPSTRA_H
#define BM_IO_FEATURES_CEPSTRA_H

#include "core/status.h"

#include <stddef.h>

typedef struct bm_cepstra bm_cepstra;

/* The first n >= 1 cepstra of this number of bands. Fails with BM_ERR_CONFIG if
 * there are less than n bands, or with BM_ERR_MEMORY. Free with
 * bm_cepstra_free; NULL is a no-op. */
BM_CHECKED bm_status bm_cepstra_new(bm_cepstra **out, size_t bands, size_t n);
void bm_cepstra_free(bm_cepstra *c);

/* x [frames, bands] -> the first n columns of y [frames, stride]. One thread at a
 * time: c has the scratch memory. */
void bm_cepstra_apply(bm_cepstra *c, const float *x, size_t frames, float *y,
                      size_t stride);

#endif
