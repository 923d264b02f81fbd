/*
 * cpu_loss.h - helpers of the losses of the cpu backend: frames, scores, and
 * the mean of a gradient. Only compute/cpu includes this.
 */
#ifndef BM_COMPUTE_CPU_CPU_LOSS_H
#define BM_COMPUTE_CPU_CPU_LOSS_H

#include "compute/backend.h"

/* The first class whose logit is `top`, the maximum of x [n]. */
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

/* Clears the rows of sequence b, which is skipped, in dy. */
void bm_cpu_clear_sequence(bm_tensor dy, size_t b);

/* The labels of sequence b. */
const int32_t *bm_cpu_labels(bm_targets t, size_t b);

/* The sum over b, in order, of the scores that `one` returns for sequences
 * 0 .. B - 1. It is called on all threads, for one `part` on one thread. */
bm_score bm_cpu_score(bm_backend *be, size_t B, const void *self,
                      bm_score (*one)(const void *self, size_t part, size_t b));

/* Turns the gradient of a sum over `count` items into that of their mean, and
 * clears padding. dy may have no data. */
void bm_cpu_mean_gradient(bm_backend *be, bm_extent e, bm_tensor dy,
                          double count);

#endif
