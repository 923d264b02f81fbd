/*
 * code_fp16.c - IEEE's halves, rounded to the nearest, ties to even: multiples
 * of 2^-24 below 2^-14, 11 bits above. What is larger than 65504 becomes that,
 * so that error feedback sends the rest later.
 */
#include "comm/code.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    DROPPED = 13,            /* bits of the fraction */
    BIAS = (127 - 15) << 10, /* between the exponents, in a half's place */
    LARGEST = 0x7bff,        /* 65504 */
    SUBNORMAL = 113 << 23,   /* a float's 2^-14 */
    TOO_LARGE = 0x477ff000,  /* and 65520, which rounds to infinity */
};

static size_t bytes(const bm_code *c, size_t n)
{
    (void)c;
    return n * sizeof(uint16_t);
}

static uint16_t shorten(float x)
{
    uint32_t bits = 0, size = 0, half = 0;

    memcpy(&bits, &x, sizeof bits);
    size = bits & 0x7fffffffu;
    if (size >= TOO_LARGE)
        half = LARGEST;
    else if (size < SUBNORMAL)
        half = (uint32_t)lrintf(fabsf(x) * 0x1p24f);
    else
        half = ((size + 0xfffu + (size >> DROPPED & 1)) >> DROPPED) - BIAS;
    return (uint16_t)((bits >> 16 & 0x8000u) | half);
}

static float lengthen(uint16_t half)
{
    uint32_t size = half & 0x7fffu, bits = (size + BIAS) << DROPPED;
    float x = 0;

    memcpy(&x, &bits, sizeof x);
    if (size < 0x400)
        x = (float)size * 0x1p-24f;
    return half & 0x8000u ? -x : x;
}

static void encode(const bm_code *c, size_t n, const float *x, void *code)
{
    unsigned char *out = code;

    (void)c;
    for (size_t i = 0; i < n; i++) {
        uint16_t half = shorten(x[i]);
        memcpy(out + sizeof half * i, &half, sizeof half);
    }
}

static void decode(const bm_code *c, size_t n, const void *code, float *x)
{
    const unsigned char *in = code;

    (void)c;
    for (size_t i = 0; i < n; i++) {
        uint16_t half = 0;

        memcpy(&half, in + sizeof half * i, sizeof half);
        x[i] = lengthen(half);
    }
}

const bm_code_ops bm_code_fp16 = {
    .name = "fp16",
    .help = "2 bytes a weight: 11 bits, up to 65504",
    .bytes = bytes,
    .encode = encode,
    .decode = decode,
};
