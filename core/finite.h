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

/* True for n = 0. */
static inline bool bm_all_finite(const float *x, size_t n)
{
    uint32_t odd = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits = 0;
        memcpy(&bits, x + i, sizeof bits);
        odd |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return odd == 0;
}

#endif
