/*
 * crc32c.c - with the processor's instruction, or without it eight bytes at a
 * time with eight tables ("slicing by 8": Kounavis and Berry 2008). Table k has
 * the checksums of a byte followed by k zeros.
 */
#include "io/shard/crc32c.h"

#include "io/shard/crc32c_parts.h"

#include <pthread.h>
#include <string.h>

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t x = i;
        for (int bit = 0; bit < 8; bit++)
            x = x & 1 ? (x >> 1) ^ 0x82f63b78u : x >> 1;
        table[0][i] = x;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t x = table[k - 1][i];
            table[k][i] = (x >> 8) ^ table[0][x & 255];
        }
}

static uint32_t eight(uint32_t crc, const unsigned char *p)
{
    uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 |
                          (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);

    return table[7][low & 255] ^ table[6][low >> 8 & 255] ^
           table[5][low >> 16 & 255] ^ table[4][low >> 24] ^ table[3][p[4]] ^
           table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
}

uint32_t bm_crc32c_plain(const void *data, size_t size)
{
    const unsigned char *p = data;
    uint32_t crc = ~(uint32_t)0;

    pthread_once(&once, fill);
    for (; size >= 8; size -= 8, p += 8)
        crc = eight(crc, p);
    for (; size > 0; size--)
        crc = (crc >> 8) ^ table[0][(crc ^ *p++) & 255];
    return ~crc;
}

#ifdef __x86_64__

__attribute__((target("sse4.2"))) static uint32_t
with_instruction(const unsigned char *p, size_t size)
{
    uint64_t crc = ~(uint32_t)0;

    for (; size >= 8; size -= 8, p += 8) {
        uint64_t word = 0;
        memcpy(&word, p, sizeof word);
        crc = _mm_crc32_u64(crc, word);
    }
    for (; size > 0; size--)
        crc = _mm_crc32_u8((uint32_t)crc, *p++);
    return ~(uint32_t)crc;
}

uint32_t bm_crc32c(const void *data, size_t size)
{
    return __builtin_cpu_supports("sse4.2") ? with_instruction(data, size)
                                            : bm_crc32c_plain(data, size);
}

#else

uint32_t bm_crc32c(const void *data, size_t size)
{
    return bm_crc32c_plain(data, size);
}

#endif
