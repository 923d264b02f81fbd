/*
 * cpu_loss.h - what the losses of the cpu backend share: the softmax of a frame
 * and the end of a gradient. Only compute/cpu_*.c include this.
 */
#ifndef BM_COMPUTE_CPU_LOSS_H
#define BM_COMPUTE_CPU_LOSS_H

#include "compute/backend.h"

/* log p(k) = x(k) - top - log_sum. */
typedef struct bm_softmax {
    float top;     /* the largest logit */
    float sum;     /* of exp(x - top); no number if one of x is none */
    float log_sum; /* its logarithm */
    size_t best;   /* class of the largest logit, the first of equals */
} bm_softmax;

/* The softmax of x [n]; y [n], unless NULL, gets the probabilities. */
bm_softmax bm_cpu_softmax(size_t n, const float *x, float *y);

/* Frame t of sequence b in x [T, B, C]; NULL if x has no data. */
static inline float *bm_cpu_frame(bm_tensor x, size_t t, size_t b)
{
    return x.data == NULL ? NULL : x.data + (t * x.dim[1] + b) * x.dim[2];
}

/* Sequence b takes no part: zeros in all its rows of dy. */
void bm_cpu_clear_sequence(bm_tensor dy, size_t b);

/* From the gradient of a sum over `count` things to that of their mean; zeros
 * past the end of a sequence. dy may be without data. */
void bm_cpu_mean_gradient(bm_extent e, bm_tensor dy, double count);

/* The two losses of backend.h. */
void bm_cpu_ctc(bm_backend *be, bm_extent e, bm_targets t, bm_infeasible policy,
                bm_tensor y, bm_tensor dy, float *work, bm_score *score);
void bm_cpu_cross_entropy(bm_backend *be, bm_extent e, bm_targets t,
                          bm_tensor y, bm_tensor dy, bm_score *score);

#endif
