/*
 * feature_ops.h - what is done to frames of features: differences over time,
 * mean and variance normalisation, stacking, subsampling. Shapes are [T, D].
 */
#ifndef BM_IO_FEATURES_FEATURE_OPS_H
#define BM_IO_FEATURES_FEATURE_OPS_H

#include <stdbool.h>
#include <stddef.h>

enum { BM_DELTA_ORDER = 2, BM_DELTA_WINDOW = 10 }; /* the most there is */

/*
 * x [T, D] -> y [T, (order + 1) D]: x, its slope over +-window frames, and the
 * slope of that (Kaldi's feature-functions: order k is the convolution of order
 * k - 1 with j / sum j^2). Beyond the ends the edge frames are repeated.
 */
void bm_deltas(const float *x, size_t frames, size_t dim, size_t order,
               size_t window, float *y);

/* Frames that are left of T when every n-th is kept, from the first on. */
size_t bm_subsampled(size_t frames, size_t every);

/*
 * x [T, D] -> y [bm_subsampled(T, every), n D]: frame t of every kept t becomes
 * frames t, t + 1, .. t + n - 1 side by side; beyond the end the last frame is
 * repeated. n = every uses each frame once.
 */
void bm_stack(const float *x, size_t frames, size_t dim, size_t n, size_t every,
              float *y);

/* Counts, sums and sums of squares of D features: 1 + 2 D doubles, from 0. */
#define BM_MOMENTS(dim) (1 + 2 * (dim))

void bm_moments_add(double *moments, const float *x, size_t frames, size_t dim);

/* Makes what the moments were taken of mean 0 and, if asked to, variance 1.
 * What does not vary becomes 0. */
void bm_normalise(float *x, size_t frames, size_t dim, const double *moments,
                  bool variance);

#endif
