/*
 * muon.h - Muon (Jordan and others 2024, kellerjordan.github.io/posts/muon): the
 * step d of momentum SGD is made orthogonal in each matrix of weights,
 *
 *     x <- d / |d|
 *     x <- a x + (b x x' + c (x x')^2) x          five times, after Newton and
 *     w <- (1 - rate lambda) w                    Schulz: singular values of x
 *          + rate sqrt(max(1, out / in)) x        come near 1
 *
 * with (a, b, c) = (3.4445, -4.775, 2.0315), and out and in the outputs and inputs
 * of the matrix. All other weights take the step itself, w <- (1 - rate lambda) w
 * + d: biases, and vectors side by side (BM_NO_MATRIX), which are those of u and v
 * of attention and the kernels of a depthwise convolution. Each gate of an LSTM has
 * matrices of its own.
 */
#ifndef BM_SGD_MUON_H
#define BM_SGD_MUON_H

#include "compute/params.h"

typedef struct bm_muon bm_muon;

/* The params are borrowed and must outlive it. Fails with BM_ERR_MEMORY.
 * bm_muon_free accepts NULL. */
BM_CHECKED bm_status bm_muon_new(bm_muon **out, const bm_params *params);
void bm_muon_free(bm_muon *m);

/* Queued. Updates params->w [n] from the step d [n], which is overwritten. Where d
 * is 0 there is no step, only decay. */
void bm_muon_step(bm_muon *m, float *d, float rate, float decay);

#endif
