/*
 * adam.h - one step of AdamW for each number, given factors that depend on the
 * gradient's norm and on t: the same rounding on every backend.
 *
 *     x = scale g
 *     m = old1 m + new1 x
 *     v = old2 v + (new2 x) x
 *     w = keep w - by m / (root sqrt(v) + epsilon)
 *
 * or of RMSProp:
 *
 *     x = scale g + decay w
 *     v = old2 v + (new2 x) x
 *     m = old1 m + x / (sqrt(v) + epsilon)
 *     w = w - rate m
 */
#ifndef BM_COMPUTE_ADAM_H
#define BM_COMPUTE_ADAM_H

#include <stdbool.h>

typedef struct bm_adam_factors {
    float scale;      /* min(1, clip / |g|) */
    float old1, new1; /* beta1, 1 - beta1 */
    float old2, new2; /* beta2, 1 - beta2 */
    float keep;       /* 1 - rate decay */
    float by;         /* rate / (1 - beta1^t) */
    float root;       /* 1 / sqrt(1 - beta2^t) */
    float epsilon;
    bool rms; /* RMSProp */
    float decay, rate;
} bm_adam_factors;

#endif
