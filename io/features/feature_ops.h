/*
 * feature_ops.h - operations on frames of features: deltas, mean and variance
 * normalisation, stacking, subsampling. Shapes are [T, D], row-major; all
 * memory is the caller's. Nothing here fails.
 */
#ifndef BM_IO_FEATURES_FEATURE_OPS_H
#define BM_IO_FEATURES_FEATURE_OPS_H

#include <stdbool.h>
#include <stddef.h>

enum { BM_DELTA_ORDER = 2, BM_DELTA_WINDOW = 10 }; /* the largest */

/*
 * x [T, D] -> y [T, (order + 1) D]: x, its slope over +-window frames, and the
 * slope of that (Kaldi's feature-functions: order k is the convolution of order
 * k - 1 with j / sum j^2). The first and the last frame are repeated beyond the
 * ends. order <= BM_DELTA_ORDER, window <= BM_DELTA_WINDOW.
 */
void bm_deltas(const float *x, size_t frames, size_t dim, size_t order,
               size_t window, float *y);

/* The number of frames left if the first of every `every` frames is kept. */
size_t bm_subsampled(size_t frames, size_t every);

/*
 * x [T, D] -> y [bm_subsampled(T, every), n D]: a row is the frames t, t + 1,
 * .. t + n - 1 side by side, for t = 0, every, 2 every ..; the last frame is
 * repeated beyond the end. With n = every each frame is used once.
 */
void bm_stack(const float *x, size_t frames, size_t dim, size_t n, size_t every,
              float *y);

/* Moments: count, D sums, D sums of squares: 1 + 2 D doubles, 0 at the
 * start. */
#define BM_MOMENTS(dim) (1 + 2 * (dim))

/* Adds x [T, D]. */
void bm_moments_add(double *moments, const float *x, size_t frames, size_t dim);

/* What feature d is normalised by: x <- (x - mean) * scale, where scale is 1
 * unless `variance`. */
void bm_moments_norm(const double *moments, size_t dim, bool variance, size_t d,
                     double *mean, double *scale);

/* Normalises x [T, D] with the mean and, if `variance`, the variance of the
 * moments. A constant feature becomes 0. */
void bm_normalise(float *x, size_t frames, size_t dim, const double *moments,
                  bool variance);

/*
 * x [T, D] -> y [T, D], each frame normalised by the moments of `window` frames
 * around it, t - window / 2 .. (Kaldi's apply-cmvn-sliding --center=true): at the
 * ends the window is moved inwards, and with T < window it is all frames.
 * moments [BM_MOMENTS(D)]: scratch.
 */
void bm_normalise_sliding(const float *x, size_t frames, size_t dim,
                          size_t window, bool variance, double *moments,
                          float *y);

#endif
