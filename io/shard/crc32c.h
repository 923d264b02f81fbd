/*
 * crc32c.h - CRC-32C (Castagnoli): reflected polynomial 0x82F63B78, start and
 * final XOR ~0. The checksum of "123456789" is e3069283.
 */
#ifndef BM_IO_SHARD_CRC32C_H
#define BM_IO_SHARD_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of `size` bytes. Thread-safe. */
uint32_t bm_crc32c(const void *data, size_t size);

#endif
