/*
 * crc32c.c - eight bytes at a time with eight tables ("slicing by 8": Kounavis
 * and Berry 2008). Table k holds the checksum of a byte followed by k zeros.
 */
#include "io/crc32c.h"

#include <pthread.h>

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

uint32_t bm_crc32c(const void *data, size_t size)
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
