/* crc32c.h - the checksum of records in TensorBoard's event files: CRC-32C, as
 * io/shard/crc32c.h has it, masked. */
#ifndef BM_CLI_TELEMETRY_CRC32C_H
#define BM_CLI_TELEMETRY_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum as it stands in a file: rotated and shifted by a constant, so
 * that the checksum of data that contain checksums is no special case. */
uint32_t bm_crc32c_masked(const void *data, size_t n);

#endif
