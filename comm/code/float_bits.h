/* float_bits.h - floats as integers, for codes. */
#ifndef BM_COMM_CODE_FLOAT_BITS_H
#define BM_COMM_CODE_FLOAT_BITS_H

#include <stdint.h>
#include <string.h>

static inline int32_t bm_bits_of(float x)
{
    int32_t bits = 0;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float bm_float_of(int32_t bits)
{
    float x = 0;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The bits of |x|, which are in the order of |x|. */
static inline int32_t bm_magnitude(float x)
{
    return bm_bits_of(x) & 0x7fffffff;
}

#endif
