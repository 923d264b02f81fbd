/*
 * flush.h - arithmetic as the program has it on the host, where subnormal
 * floats are zero as operands and as results (compute/cpu/subnormals.h). The
 * kernels of exchanges use it, whose bits are those of the host.
 */
#ifndef BM_COMPUTE_CUDA_KERNELS_FLUSH_H
#define BM_COMPUTE_CUDA_KERNELS_FLUSH_H

#include "compute/cuda/kernels/kernel.h"

/* A zero of the same sign for a subnormal number. */
BM_INLINE float bm_flush(float x)
{
    int bits = __float_as_int(x);

    return (bits & 0x7f800000) != 0 ? x : __int_as_float(bits & ~0x7fffffff);
}

BM_INLINE double bm_widen(float x)
{
    return bm_flush(x);
}

/* To float; below 2^-126 it is zero. ARM compares before it rounds, x86 after it
 * has rounded to 24 bits. */
BM_INLINE float bm_narrow(double x)
{
#ifdef __aarch64__
    const double least = 0x1p-126;
#else
    const double least = 0x1.ffffffp-127; /* it rounds to 2^-126 */
#endif
    float y = (float)x;

    return x < least && x > -least
               ? __int_as_float(__float_as_int(y) & ~0x7fffffff)
               : y;
}

/* Sums and differences below 2^-126 are exact. */
BM_INLINE float bm_add(float a, float b)
{
    return bm_flush(__fadd_rn(bm_flush(a), bm_flush(b)));
}

BM_INLINE float bm_subtract(float a, float b)
{
    return bm_flush(__fsub_rn(bm_flush(a), bm_flush(b)));
}

/* The product is exact in double, and the quotient exact enough. */
BM_INLINE float bm_times(float a, float b)
{
    return bm_narrow(__dmul_rn(bm_widen(a), bm_widen(b)));
}

BM_INLINE float bm_over(float a, float b)
{
    return bm_narrow(__ddiv_rn(bm_widen(a), bm_widen(b)));
}

#endif
