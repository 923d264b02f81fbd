/*
 * code_topk.c - the k = round(share n) largest of the n numbers of a chunk, at
 * least one; of equal ones the first. The code is k floats and k indices of two
 * bytes, both in the order of the vector. The others are decoded as 0.
 */
#include "comm/code/code.h"
#include "comm/code/code_bits.h"
#include "comm/code/float_bits.h"
#include "core/status.h"

#include <math.h>
#include <string.h>

enum { BITS = BM_WORD_BITS };

static size_t count(const bm_code *c, size_t n)
{
    size_t k = (size_t)round(c->share * (double)n);

    return k > 1 ? k : n > 0;
}

static size_t bytes(const bm_code *c, size_t n)
{
    return count(c, n) * (sizeof(float) + sizeof(uint16_t));
}

static inline size_t count_from(size_t n, const float *x, int32_t least)
{
    int32_t found = 0;

    for (size_t i = 0; i < n; i++)
        found += bm_magnitude(x[i]) >= least;
    return (size_t)found;
}

/* The k largest are those above the result and the first *ties of those equal
 * to it. Found bit by bit from the highest, until k are left. */
static int32_t threshold(size_t n, const float *x, size_t k, size_t *ties)
{
    int32_t least = 0;
    size_t found = n;

    for (int bit = 30; bit >= 0 && found > k; bit--) {
        int32_t more = least | 1 << bit;
        size_t count = count_from(n, x, more);

        if (count >= k) {
            least = more;
            found = count;
        }
    }
    *ties = found > k ? k - count_from(n, x, least + 1) : k;
    return least;
}

/* A word with a bit for each of 32 that is `least` or larger. */
static inline uint32_t large(const float *x, int32_t least)
{
    uint32_t word = 0;

    for (size_t i = 0; i < BITS; i++)
        word |= (0 - (uint32_t)(bm_magnitude(x[i]) >= least)) & bm_bit[i];
    return word;
}

/* The same for the last n < 32. */
static uint32_t large_of_rest(size_t n, const float *x, int32_t least)
{
    float rest[BITS] = {0};

    memcpy(rest, x, n * sizeof *x);
    return large(rest, least) & (bm_bit[n] - 1);
}

static void encode(const bm_code *c, size_t n, const float *x, void *code)
{
    size_t k = count(c, n), ties = 0, taken = 0;
    unsigned char *value = code, *place = value + k * sizeof *x;
    int32_t least = threshold(n, x, k, &ties);

    BM_ASSERT(k <= n && n <= UINT16_MAX);
    for (size_t at = 0; at < n; at += BITS) {
        uint32_t word = n - at < BITS ? large_of_rest(n - at, x + at, least)
                                      : large(x + at, least);

        for (; word != 0; word &= word - 1) {
            uint16_t i = (uint16_t)(at + (size_t)__builtin_ctz(word));
            bool tie = bm_magnitude(x[i]) == least;

            if (tie && ties == 0)
                continue;
            ties -= tie;
            memcpy(value + taken * sizeof *x, x + i, sizeof *x);
            memcpy(place + taken * sizeof i, &i, sizeof i);
            taken++;
        }
    }
    BM_ASSERT(taken == k);
}

static void decode(const bm_code *c, size_t n, const void *code, float *x)
{
    size_t k = count(c, n);
    const unsigned char *value = code, *place = value + k * sizeof *x;

    memset(x, 0, n * sizeof *x);
    for (size_t i = 0; i < k; i++) {
        uint16_t at = 0;

        memcpy(&at, place + i * sizeof at, sizeof at);
        memcpy(x + at, value + i * sizeof *x, sizeof *x);
    }
}

const bm_code_ops BM_OF_ISA(bm_code_topk, BM_ISA) = {
    .name = "topk",
    .help = "the largest of every 1024, 6 bytes each",
    .bytes = bytes,
    .encode = encode,
    .decode = decode,
};
