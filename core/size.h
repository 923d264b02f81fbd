/*
 * size.h - sums and products of sizes that follow from files and settings:
 * SIZE_MAX instead of an overflow, so that a chain of them is compared with a
 * limit once, at its end.
 */
#ifndef BM_CORE_SIZE_H
#define BM_CORE_SIZE_H

#include <stddef.h>
#include <stdint.h>

static inline size_t bm_size_add(size_t a, size_t b)
{
    size_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

static inline size_t bm_size_mul(size_t a, size_t b)
{
    size_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

#endif
