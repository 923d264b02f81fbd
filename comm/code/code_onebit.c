/*
 * code_onebit.c - 1-bit SGD's quantiser (Seide et al. 2014) with the threshold
 * zero, as CNTK has it (Math/ColumnQuantizer.h). Of a column of R rows
 *
 *     m0 = mean {x : x < 0}    m1 = mean {x : x >= 0}    of none: 0
 *     x^ = x < 0 ? m0 : m1
 *
 * travel as two floats and ceil(R / 32) words, row i in bit i mod 32 of word
 * i / 32.
 *
 * Sums are in double and in this order, on every machine: 16 of the rows i =
 * 0, 1, ... 15 modulo 16, from the first row to the last; then the upper half
 * of the sums is added to the lower one, until one is left.
 */
#include "comm/code/code.h"
#include "comm/code/code_bits.h"
#include "comm/code/float_bits.h"

#include <string.h>

enum { LEVELS = 2, BITS = BM_WORD_BITS, SUMS = 16 };

static size_t bytes(const bm_code *c, size_t n)
{
    (void)c;
    return LEVELS * sizeof(float) + (n + BITS - 1) / BITS * sizeof(uint32_t);
}

/* All bits set if x < 0, else none; -0 + 0 is 0. */
static inline uint32_t is_below(float x)
{
    return 0 - ((uint32_t)bm_bits_of(x + 0) >> 31);
}

/* x, or 0 with an empty mask. */
static inline double masked(uint32_t mask, float x)
{
    return bm_float_of((int32_t)((uint32_t)bm_bits_of(x) & mask));
}

/* Adds 32 rows and returns their word. */
static inline uint32_t add_rows(const float *restrict x, double *restrict below,
                                double *restrict above)
{
    uint32_t word = 0;

    for (size_t i = 0; i < BITS; i++)
        word |= ~is_below(x[i]) & bm_bit[i];
    for (size_t i = 0; i < BITS; i += SUMS)
        for (size_t k = 0; k < SUMS; k++) {
            uint32_t mask = is_below(x[i + k]);

            below[k] += masked(mask, x[i + k]);
            above[k] += masked(~mask, x[i + k]);
        }
    return word;
}

/* Sums of a column's negative numbers and of the others; returns the number of
 * the others. */
static size_t add_column(size_t n, const float *restrict x, double sum[LEVELS],
                         unsigned char *restrict words)
{
    double below[SUMS] = {0}, above[SUMS] = {0};
    size_t whole = n - n % BITS, count = 0;

    for (size_t at = 0; at < whole; at += BITS, words += sizeof(uint32_t)) {
        uint32_t word = add_rows(x + at, below, above);

        count += (size_t)__builtin_popcount(word);
        memcpy(words, &word, sizeof word);
    }
    if (whole < n) {
        float rest[BITS] = {0}; /* zeros change no sum */
        uint32_t word = 0;

        memcpy(rest, x + whole, (n - whole) * sizeof *x);
        word = add_rows(rest, below, above) & (bm_bit[n - whole] - 1);
        count += (size_t)__builtin_popcount(word);
        memcpy(words, &word, sizeof word);
    }
    for (size_t m = SUMS / 2; m > 0; m /= 2)
        for (size_t k = 0; k < m; k++) {
            below[k] += below[k + m];
            above[k] += above[k + m];
        }
    sum[0] = below[0];
    sum[1] = above[0];
    return count;
}

static void encode(const bm_code *c, size_t n, const float *x, void *code)
{
    unsigned char *out = code;
    float level[LEVELS];
    double sum[LEVELS];
    size_t above = add_column(n, x, sum, out + sizeof level);

    (void)c;
    level[0] = above < n ? (float)(sum[0] / (double)(n - above)) : 0;
    level[1] = above > 0 ? (float)(sum[1] / (double)above) : 0;
    memcpy(out, level, sizeof level);
}

static inline void choose(uint32_t word, float below, float above,
                          float *restrict x)
{
    for (size_t i = 0; i < BITS; i++)
        x[i] = word & bm_bit[i] ? above : below;
}

static void decode(const bm_code *c, size_t n, const void *code, float *x)
{
    const unsigned char *in = code;
    float level[LEVELS], rest[BITS];
    size_t whole = n - n % BITS;
    uint32_t word = 0;

    (void)c;
    memcpy(level, in, sizeof level);
    in += sizeof level;
    for (size_t at = 0; at < whole; at += BITS, in += sizeof word) {
        memcpy(&word, in, sizeof word);
        choose(word, level[0], level[1], x + at);
    }
    if (whole < n) {
        memcpy(&word, in, sizeof word);
        choose(word, level[0], level[1], rest);
        memcpy(x + whole, rest, (n - whole) * sizeof *x);
    }
}

const bm_code_ops BM_OF_ISA(bm_code_onebit, BM_ISA) = {
    .name = "onebit",
    .help = "a bit a weight, and two levels for every column of a matrix",
    .columns = true,
    .bytes = bytes,
    .encode = encode,
    .decode = decode,
};
