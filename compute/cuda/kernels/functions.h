/* functions.h - what activations pass back. */
#ifndef BM_COMPUTE_CUDA_KERNELS_FUNCTIONS_H
#define BM_COMPUTE_CUDA_KERNELS_FUNCTIONS_H

#include "compute/cuda/kernels/kernel.h"

/* By way of y = f(x). */
BM_INLINE float bm_derivative(bm_activation f, float y)
{
    switch (f) {
    case BM_IDENTITY:
        break;
    case BM_RELU:
        return y > 0 ? 1 : 0;
    case BM_LEAKY_RELU:
        return y > 0 ? 1 : BM_LEAK;
    case BM_TANH:
        return 1 - y * y;
    case BM_SIGMOID:
        return y * (1 - y);
    }
    return 1;
}

/* What relu holds back is zero, whatever it was. */
BM_INLINE float bm_pass_back(bm_activation f, float y, float dy)
{
    return f == BM_RELU && !(y > 0) ? 0 : dy * bm_derivative(f, y);
}

#endif
