#include "cli/telemetry/crc32c.h"

uint32_t bm_crc32c(const void *data, size_t n)
{
    static const uint32_t polynomial = 0x82f63b78u;
    const unsigned char *byte = data;
    uint32_t crc = 0xffffffffu;

    for (size_t i = 0; i < n; i++) {
        crc ^= byte[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
    }
    return crc ^ 0xffffffffu;
}

uint32_t bm_crc32c_masked(const void *data, size_t n)
{
    uint32_t crc = bm_crc32c(data, n);

    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
