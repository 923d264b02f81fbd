/*
 * code_bf16.c - the upper half of a float, rounded to the nearest, ties to
 * even. What would round to infinity becomes the largest that is finite, so
 * that error feedback sends the rest later.
 */
#include "comm/code.h"

#include <stdint.h>
#include <string.h>

static size_t bytes(const bm_code *c, size_t n)
{
    (void)c;
    return n * sizeof(uint16_t);
}

static uint16_t shorten(float x)
{
    const uint32_t infinite = 0x7f800000u;
    uint32_t bits = 0, size = 0;

    memcpy(&bits, &x, sizeof bits);
    size = bits & 0x7fffffffu;
    size += 0x7fffu + (size >> 16 & 1);
    if (size >= infinite)
        size = infinite - 1;
    return (uint16_t)(((bits & 0x80000000u) | size) >> 16);
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
        uint32_t bits = 0;

        memcpy(&half, in + sizeof half * i, sizeof half);
        bits = (uint32_t)half << 16;
        memcpy(x + i, &bits, sizeof bits);
    }
}

const bm_code_ops bm_code_bf16 = {
    .name = "bf16",
    .help = "2 bytes a weight: 8 bits, as far as floats go",
    .bytes = bytes,
    .encode = encode,
    .decode = decode,
};
