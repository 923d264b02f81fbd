/*
 * cpu_exp.h - the terms of e^x = 2^n (1 + (e^r - 1)), for loops that the
 * compiler vectorises (Cephes, expf.c; S. L. Moshier).
 *
 * A file whose bits may differ between instruction sets defines MADD first.
 */
#ifndef BM_COMPUTE_CPU_LOOPS_CPU_EXP_H
#define BM_COMPUTE_CPU_LOOPS_CPU_EXP_H

#include <stdint.h>
#include <string.h>

/* a b + c */
#ifndef MADD
#define MADD(a, b, c) ((a) * (b) + (c))
#endif

static inline uint32_t bm_bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float bm_float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^n for n = -126 .. 127; 0 for -127. */
static inline float bm_exp_power(int32_t n)
{
    return bm_float_of(((uint32_t)n + 127u) << 23);
}

/* r and n for |x| <= 2e6, with |r| <= ln(2) / 2. Adding 1.5 2^23 rounds to an
 * integer and leaves it in the low bits. */
static inline float bm_exp_reduce(float x, int32_t *n)
{
    const float turn = 12582912.0f;
    float turned = MADD(x, 1.44269504f, turn), whole = turned - turn;

    *n = (int32_t)(bm_bits_of(turned) - bm_bits_of(turn));
    return MADD(whole, 2.12194440e-4f, MADD(whole, -0.693359375f, x));
}

/* e^r - 1, a minimax polynomial. */
static inline float bm_exp_curve(float r)
{
    float p = 1.9875691500e-4f;

    p = MADD(p, r, 1.3981999507e-3f);
    p = MADD(p, r, 8.3334519073e-3f);
    p = MADD(p, r, 4.1665795894e-2f);
    p = MADD(p, r, 1.6666665459e-1f);
    p = MADD(p, r, 5.0000001201e-1f);
    return MADD(p, r * r, r);
}

#endif
