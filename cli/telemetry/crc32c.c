#include "cli/telemetry/crc32c.h"

#include "io/shard/crc32c.h"

uint32_t bm_crc32c_masked(const void *data, size_t n)
{
    uint32_t crc = bm_crc32c(data, n);

    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
