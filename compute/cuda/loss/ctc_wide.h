/*
 * ctc_wide.h - the numbers of CTC on the device: m 2^e, a float and an
 * exponent, as on the CPU (cpu_loss_loops.h). Here m is normalised to 1 .. 2
 * only every 8 frames, in which it grows to at most 2^22. Factors that are
 * powers of two round nothing, so this changes no bits, and an exponent depends
 * on that of the frame before by three instructions.
 */
#ifndef BM_COMPUTE_CUDA_LOSS_CTC_WIDE_H
#define BM_COMPUTE_CUDA_LOSS_CTC_WIDE_H

#include "compute/cuda/kernels/kernel.h"
#include "compute/cuda/loss/ctc_kernels.h"

/* As in cpu_loss_loops.h. */
enum { NEVER = -(1 << 28), LEAST = NEVER / 8 };

typedef bm_ctc_wide wide;
typedef bm_ctc_pair pair;

BM_INLINE wide make_wide(float m, int e)
{
    wide x = {m, e};
    return x;
}

/* 2^n for n <= 127, and 0 below 2^-126. */
BM_INLINE float power(int n)
{
    return __int_as_float(max(n, -127) * (1 << 23) + (127 << 23));
}

/* The same number with 1 <= m < 2. */
BM_INLINE wide put(wide x)
{
    int bits = __float_as_int(x.m);

    return make_wide(__int_as_float((bits & 0x007fffff) | 0x3f800000),
                     x.e + (bits >> 23) - 127);
}

/* exp(d) for d <= 0, see cpu_exp.h; below -2e6 it is 0. */
BM_INLINE wide wide_exp(float d)
{
    const float least = -2e6f, turn = 12582912.0f;
    float x = d < least ? least : d; /* NaN stays NaN */
    float turned = __fmaf_rn(x, 1.44269504f, turn), whole = turned - turn;
    float r =
        __fmaf_rn(whole, 2.12194440e-4f, __fmaf_rn(whole, -0.693359375f, x));
    float p = 1.9875691500e-4f;

    p = __fmaf_rn(p, r, 1.3981999507e-3f);
    p = __fmaf_rn(p, r, 8.3334519073e-3f);
    p = __fmaf_rn(p, r, 4.1665795894e-2f);
    p = __fmaf_rn(p, r, 1.6666665459e-1f);
    p = __fmaf_rn(p, r, 5.0000001201e-1f);
    p = __fmaf_rn(p, __fmul_rn(r, r), r);
    return make_wide(p + 1, d > least
                                ? __float_as_int(turned) - __float_as_int(turn)
                                : (int)NEVER);
}

BM_INLINE float narrow(wide x)
{
    return x.m * power(x.e);
}

#endif
