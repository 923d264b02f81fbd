/*
 * gauss.h - Gaussian process regression (Rasmussen & Williams 2006, chapter 2):
 * a smooth function of d numbers in [0, 1], from noisy values of it at n
 * points, with the uncertainty where it was not measured.
 *
 * The kernel is Matern 5/2 with a length per axis; the mean is constant. Lengths
 * and noise maximise the posterior (chapter 5), by a search without random
 * numbers.
 *
 *     BM_TRY(bm_gauss_fit(&g, n, d, x, y));
 *     bm_gauss_predict(g, at, &mean, &deviation);
 *     bm_gauss_free(g);
 */
#ifndef BM_CLI_TUNE_GAUSS_H
#define BM_CLI_TUNE_GAUSS_H

#include "core/status.h"

#include <stddef.h>

enum { BM_GAUSS_AXES = 32 }; /* the most */

typedef struct bm_gauss bm_gauss;

/* x [n, d], y [n], both copied; n >= 2. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_gauss_fit(bm_gauss **out, size_t n, size_t d,
                                  const double *x, const double *y);
void bm_gauss_free(bm_gauss *g); /* NULL: no-op */

/* The value expected at x [d], without noise, and its standard deviation. */
void bm_gauss_predict(const bm_gauss *g, const double *x, double *mean,
                      double *deviation);

/* The length of an axis: the function hardly changes over less. */
double bm_gauss_length(const bm_gauss *g, size_t axis);

/* How far below `best` the function is expected to be at x [d], counting 0
 * where it is above (Jones et al. 1998). */
double bm_gauss_improvement(const bm_gauss *g, const double *x, double best);

#endif
