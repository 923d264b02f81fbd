/*
 * sinc.h - resampling by a windowed sinc. The kernel is that of an ideal low
 * pass under a Hann window that is `zeros` zeros of the sinc wide on each side:
 *
 *     h(t) = sin(2 pi c t) / (pi t) * (1 + cos(2 pi c t / zeros)) / 2,
 *     |t| < zeros / (2 c), with the cutoff c in Hz and t in seconds.
 */
#ifndef BM_IO_FEATURES_SINC_H
#define BM_IO_FEATURES_SINC_H

#include "core/status.h"

#include <stddef.h>

typedef struct bm_sinc {
    double cutoff; /* Hz */
    double zeros;
} bm_sinc;

double bm_sinc_at(const bm_sinc *s, double t);

/* From a rate to another: y[k] = sum over j of x[j] h(j / from - k / to) / from,
 * with x = 0 beyond its ends. */
typedef struct bm_sinc_resampler bm_sinc_resampler;

/* from >= 2 cutoff, to >= 1: whole Hz. Fails with BM_ERR_MEMORY. Free with
 * bm_sinc_resampler_free; NULL is a no-op. */
BM_CHECKED bm_status bm_sinc_resampler_new(bm_sinc_resampler **out,
                                           const bm_sinc *s, long from,
                                           long to);
void bm_sinc_resampler_free(bm_sinc_resampler *r);

/* How many samples n samples give: those within their n / from seconds. */
size_t bm_sinc_resampled(const bm_sinc_resampler *r, size_t n);

/* x [n] -> y [bm_sinc_resampled(r, n)] */
void bm_sinc_resample(const bm_sinc_resampler *r, const float *x, size_t n,
                      double *y);

#endif
