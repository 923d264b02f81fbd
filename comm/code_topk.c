/*
 * code_topk.c - of the n numbers of a chunk the k = share n largest, rounded,
 * at least one; of equal ones the first. They travel as k floats and k places,
 * of two bytes, both in the order of the vector. The others become 0.
 */
#include "comm/code.h"
#include "core/status.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static size_t count(const bm_code *c, size_t n)
{
    size_t k = (size_t)round(c->share * (double)n);

    return k > 1 ? k : n > 0;
}

static size_t bytes(const bm_code *c, size_t n)
{
    return count(c, n) * (sizeof(float) + sizeof(uint16_t));
}

/* Without their signs numbers are in the order of their bits. */
static uint32_t size_of(float x)
{
    uint32_t bits = 0;

    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffffu;
}

/* The size of the k-th largest, found byte by byte; *ties: how many of that
 * size are among the k. */
static uint32_t threshold(size_t n, const float *x, size_t k, size_t *ties)
{
    uint32_t found = 0, mask = 0;

    for (unsigned shift = 32; shift > 0;) {
        size_t seen[256] = {0};
        uint32_t byte = 255;

        shift -= 8;
        for (size_t i = 0; i < n; i++)
            if ((size_of(x[i]) & mask) == found)
                seen[size_of(x[i]) >> shift & 255]++;
        for (; k > seen[byte]; byte--)
            k -= seen[byte];
        found |= byte << shift;
        mask |= (uint32_t)255 << shift;
    }
    *ties = k;
    return found;
}

static void encode(const bm_code *c, size_t n, const float *x, void *code)
{
    size_t k = count(c, n), ties = 0, taken = 0;
    unsigned char *value = code, *place = value + k * sizeof *x;
    uint32_t least = 0;

    BM_ASSERT(k <= n && n <= UINT16_MAX);
    if (k > 0)
        least = threshold(n, x, k, &ties);
    for (size_t i = 0; i < n && taken < k; i++) {
        uint16_t at = (uint16_t)i;

        if (size_of(x[i]) < least || (size_of(x[i]) == least && ties == 0))
            continue;
        ties -= size_of(x[i]) == least;
        memcpy(value + taken * sizeof *x, x + i, sizeof *x);
        memcpy(place + taken * sizeof at, &at, sizeof at);
        taken++;
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

const bm_code_ops bm_code_topk = {
    .name = "topk",
    .help = "the largest of every 1024, 6 bytes each",
    .bytes = bytes,
    .encode = encode,
    .decode = decode,
};
