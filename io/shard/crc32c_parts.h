/*
 * crc32c_parts.h - the fallback of bm_crc32c for processors without the
 * instruction.
 */
#ifndef BM_IO_SHARD_CRC32C_PARTS_H
#define BM_IO_SHARD_CRC32C_PARTS_H

#include <stddef.h>
#include <stdint.h>

/* As bm_crc32c, eight bytes at a time with tables. Thread-safe. */
uint32_t bm_crc32c_plain(const void *data, size_t size);

#endif
