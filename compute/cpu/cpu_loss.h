/*
 * cpu_loss.h - what the losses of the cpu backend share: frames and the end of
 * a gradient. Only compute/cpu_*.c include this.
 */
#ifndef BM_COMPUTE_CPU_CPU_LOSS_H
#define BM_COMPUTE_CPU_CPU_LOSS_H

#include "compute/backend.h"

/* The first class of logit `top`, the largest of x [n]. */
static inline size_t bm_cpu_best(size_t n, const float *x, float top)
{
    size_t k = 0;

    while (k + 1 < n && x[k] != top)
        k++;
    return k;
}

/* Frame t of sequence b in x [T, B, C]; NULL if x has no data. */
static inline float *bm_cpu_frame(bm_tensor x, size_t t, size_t b)
{
    return x.data == NULL ? NULL : x.data + (t * x.dim[1] + b) * x.dim[2];
}

/* Sequence b takes no part: zeros in all its rows of dy. */
void bm_cpu_clear_sequence(bm_tensor dy, size_t b);

/* Those of sequence b. */
const int32_t *bm_cpu_labels(bm_targets t, size_t b);

/* The sum, in their order, of what `one` says of sequences 0 .. B - 1. They are
 * taken on all threads; those of one part, on one. */
bm_score bm_cpu_score(bm_backend *be, size_t B, const void *self,
                      bm_score (*one)(const void *self, size_t part, size_t b));

/* From the gradient of a sum over `count` things to that of their mean; zeros
 * past the end of a sequence. dy may be without data. */
void bm_cpu_mean_gradient(bm_backend *be, bm_extent e, bm_tensor dy,
                          double count);

#endif
