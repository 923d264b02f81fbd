/*
 * code_halves.c - two bytes per number, rounded to nearest, ties to even:
 *
 *     fp16    IEEE's: multiples of 2^-24 below 2^-14, 11 bits above, to 65504
 *     bf16    the upper half of a float
 *
 * What would round to infinity becomes the largest finite number, so that error
 * feedback sends the rest later. In all formats the bits without the sign are in
 * the order of the numbers.
 */
#include "comm/code/code.h"
#include "comm/code/float_bits.h"

#include <string.h>

enum {
    DROPPED = 13,             /* bits of a float's fraction, by fp16 */
    BIAS = (127 - 15) * 1024, /* between the exponents, in a half's place */
    NORMAL = 0x400,           /* fp16's 2^-14 */
    NORMAL_FLOAT = 113 << 23, /* a float's */
    LARGEST = 0x7bff,         /* 65504 */
    HALF = 126 << 23,         /* a float of 1/2 */
    LARGEST_FLOAT = 0x7f7fffff,
};

static inline int32_t to_fp16(int32_t bits)
{
    /* The last place of 1/2 is 2^-24. */
    int32_t small = bm_bits_of(bm_float_of(bits) + 0.5F) - HALF;
    int32_t half = ((bits + 0xfff + (bits >> DROPPED & 1)) >> DROPPED) - BIAS;

    half = bits < NORMAL_FLOAT ? small : half;
    return half < LARGEST ? half : LARGEST;
}

static inline int32_t from_fp16(int32_t half)
{
    int32_t small = bm_bits_of((float)half * 0x1p-24F);

    return half < NORMAL ? small : (half + BIAS) << DROPPED;
}

static inline int32_t to_bf16(int32_t bits)
{
    int32_t rounded = bits + 0x7fff + (bits >> 16 & 1);

    return (rounded < LARGEST_FLOAT ? rounded : LARGEST_FLOAT) >> 16;
}

static inline int32_t from_bf16(int32_t half)
{
    return half << 16;
}

static inline void shorten(size_t n, const float *restrict x,
                           int32_t (*round)(int32_t),
                           unsigned char *restrict code)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half = (uint16_t)((bm_bits_of(x[i]) >> 16 & 0x8000) |
                                   round(bm_magnitude(x[i])));

        memcpy(code + i * sizeof half, &half, sizeof half);
    }
}

static inline void lengthen(size_t n, const unsigned char *restrict code,
                            int32_t (*widen)(int32_t), float *restrict x)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half = 0;
        float size = 0;

        memcpy(&half, code + i * sizeof half, sizeof half);
        size = bm_float_of(widen(half & 0x7fff));
        x[i] = half & 0x8000 ? -size : size;
    }
}

static size_t bytes(const bm_code *c, size_t n)
{
    (void)c;
    return n * sizeof(uint16_t);
}

static void encode_fp16(const bm_code *c, size_t n, const float *x, void *code)
{
    (void)c;
    shorten(n, x, to_fp16, code);
}

static void decode_fp16(const bm_code *c, size_t n, const void *code, float *x)
{
    (void)c;
    lengthen(n, code, from_fp16, x);
}

static void encode_bf16(const bm_code *c, size_t n, const float *x, void *code)
{
    (void)c;
    shorten(n, x, to_bf16, code);
}

static void decode_bf16(const bm_code *c, size_t n, const void *code, float *x)
{
    (void)c;
    lengthen(n, code, from_bf16, x);
}

const bm_code_ops BM_OF_ISA(bm_code_fp16, BM_ISA) = {
    .name = "fp16",
    .help = "2 bytes a weight: 11 bits, up to 65504",
    .bytes = bytes,
    .encode = encode_fp16,
    .decode = decode_fp16,
};

const bm_code_ops BM_OF_ISA(bm_code_bf16, BM_ISA) = {
    .name = "bf16",
    .help = "2 bytes a weight: 8 bits, as far as floats go",
    .bytes = bytes,
    .encode = encode_bf16,
    .decode = decode_bf16,
};
