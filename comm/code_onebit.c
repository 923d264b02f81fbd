/*
 * code_onebit.c - 1-bit SGD's quantiser (Seide et al. 2014) with the threshold
 * zero, as CNTK has it (Math/ColumnQuantizer.h). Of a column of R rows
 *
 *     m0 = mean {x : x < 0}    m1 = mean {x : x >= 0}    of none: 0
 *     x^ = x < 0 ? m0 : m1
 *
 * travel as two floats and ceil(R / 32) words, row i in bit i mod 32 of word
 * i / 32.
 */
#include "comm/code.h"

#include <stdint.h>
#include <string.h>

enum { LEVELS = 2, BITS = 32 };

static size_t bytes(const bm_code *c, size_t n)
{
    (void)c;
    return LEVELS * sizeof(float) + (n + BITS - 1) / BITS * sizeof(uint32_t);
}

static void means(size_t n, const float *x, float level[LEVELS])
{
    double sum[LEVELS] = {0};
    size_t count = 0; /* of those that are not negative */

    for (size_t i = 0; i < n; i++) {
        sum[0] += x[i] < 0 ? (double)x[i] : 0;
        sum[1] += x[i] < 0 ? 0 : (double)x[i];
        count += x[i] >= 0;
    }
    level[0] = count < n ? (float)(sum[0] / (double)(n - count)) : 0;
    level[1] = count > 0 ? (float)(sum[1] / (double)count) : 0;
}

static void encode(const bm_code *c, size_t n, const float *x, void *code)
{
    unsigned char *out = code;
    float level[LEVELS];

    (void)c;
    means(n, x, level);
    memcpy(out, level, sizeof level);
    out += sizeof level;
    for (size_t at = 0; at < n; at += BITS, out += sizeof(uint32_t)) {
        uint32_t word = 0;

        for (size_t i = at; i < n && i < at + BITS; i++)
            word |= (uint32_t)(x[i] >= 0) << (i - at);
        memcpy(out, &word, sizeof word);
    }
}

static void decode(const bm_code *c, size_t n, const void *code, float *x)
{
    const unsigned char *in = code;
    float level[LEVELS];

    (void)c;
    memcpy(level, in, sizeof level);
    in += sizeof level;
    for (size_t at = 0; at < n; at += BITS, in += sizeof(uint32_t)) {
        uint32_t word = 0;

        memcpy(&word, in, sizeof word);
        for (size_t i = at; i < n && i < at + BITS; i++)
            x[i] = level[word >> (i - at) & 1];
    }
}

const bm_code_ops bm_code_onebit = {
    .name = "onebit",
    .help = "a bit a weight, and two levels for every column of a matrix",
    .columns = true,
    .bytes = bytes,
    .encode = encode,
    .decode = decode,
};
