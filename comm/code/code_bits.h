/*
 * code_bits.h - 32 flags in one word, the first in the lowest bit. A loop over
 * all 32 is vectorized if it has no branch:
 *
 *     word |= mask & bm_bit[i];    mask: all bits set, or none
 */
#ifndef BM_COMM_CODE_CODE_BITS_H
#define BM_COMM_CODE_CODE_BITS_H

#include <stdint.h>

enum { BM_WORD_BITS = 32 };

#define BM_FOUR_BITS(i) 1U << (i), 2U << (i), 4U << (i), 8U << (i)
static const uint32_t bm_bit[BM_WORD_BITS] = {
    BM_FOUR_BITS(0),  BM_FOUR_BITS(4),  BM_FOUR_BITS(8),  BM_FOUR_BITS(12),
    BM_FOUR_BITS(16), BM_FOUR_BITS(20), BM_FOUR_BITS(24), BM_FOUR_BITS(28)};
#undef BM_FOUR_BITS

#endif
