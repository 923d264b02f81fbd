/* crc32c.h - the checksum of records in TensorBoard's event files: CRC-32C
 * (Castagnoli), which zlib does not have. */
#ifndef BM_CLI_TELEMETRY_CRC32C_H
#define BM_CLI_TELEMETRY_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Reflected, polynomial 0x82f63b78; "123456789" gives 0xe3069283. */
uint32_t bm_crc32c(const void *data, size_t n);

/* As it stands in a file: rotated and shifted by a constant, so that the
 * checksum of data that contain checksums is no special case. */
uint32_t bm_crc32c_masked(const void *data, size_t n);

#endif
