/*
 * layer_rig.h - a single layer, with the layers fused into it, on the backend
 * `cpu`: derivatives by weights and inputs against differences of L, the sum of
 * dy y with dy fixed.
 *
 *     rig r = rig_open("conv:3,3x3", (bm_extent){T, B, lengths}, 10, 2, 3);
 *     rig_check(&r, 1e-4);
 *     rig_close(&r);
 */
#ifndef BM_TESTS_SUPPORT_REFERENCE_LAYER_RIG_H
#define BM_TESTS_SUPPORT_REFERENCE_LAYER_RIG_H

#include "models/layers/layer.h"

typedef struct rig {
    bm_layer *l;            /* the first */
    bm_pass pass;           /* of training; a test may change that */
    size_t n_x, n_y;        /* numbers */
    size_t n_w, n_s;        /* learned; statistics */
    bm_tensor x, y;         /* [T, B, n_in], [T', B, n_out] */
    bm_tensor dy, dx;       /* likewise */
    float *x_host, *slope;  /* x, copied by each rig_outcome; dy */
    float *w_host, *s_host; /* w, likewise; initial statistics */
} rig;

/*
 * The first layer of `net`, into which all others must be fused, with x [T, B,
 * n_in] in columns of `channels`, or flat if that is 0. x, dy, w and s are
 * drawn from `seed`; x and dy are 0 in padding.
 */
rig rig_open(const char *net, bm_extent in, size_t n_in, size_t channels,
             uint64_t seed);
void rig_close(rig *r);

/* Runs forward; returns L. Fails unless y is finite, and 0 in padding. */
double rig_outcome(rig *r);

/* Runs backward. Fails unless g and dx are near the differences, and dx is 0 in
 * padding. With BMUF_TEST_SHORT it looks at every fifth derivative. */
void rig_check(rig *r, double tolerance);

#endif
