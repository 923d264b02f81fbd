/*
 * finite.h - tests a vector for infinities and NaNs, whose exponent bits are
 * all ones. An integer test without a branch runs at the speed of memory.
 */
#ifndef BM_CORE_FINITE_H
#define BM_CORE_FINITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* 1 if x is infinite or NaN, else 0. */
static inline uint32_t bm_non_finite(float x)
{
    uint32_t bits = 0;

    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7f800000u) == 0x7f800000u;
}

/* True for n = 0. */
static inline bool bm_all_finite(const float *x, size_t n)
{
    uint32_t non_finite = 0;

    for (size_t i = 0; i < n; i++)
        non_finite |= bm_non_finite(x[i]);
    return non_finite == 0;
}

#endif
