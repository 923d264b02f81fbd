#include "io/shard/store.h"

#include "core/finite.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} known[] = {
    [BM_STORE_F32] = {"f32", 4},
    [BM_STORE_F16] = {"f16", 2},
    [BM_STORE_U8] = {"u8", 1},
};

size_t bm_store_size(bm_store store)
{
    return known[store].size;
}

const char *bm_store_name(bm_store store)
{
    return known[store].name;
}

bm_status bm_store_find(const char *name, bm_store *out)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(name, known[i].name) == 0) {
            *out = (bm_store)i;
            return BM_OK;
        }
    return BM_FAIL(BM_ERR_CONFIG,
                   "shard.store: \"%s\" is invalid; take f32, f16 or u8", name);
}

static uint32_t bits(float x)
{
    uint32_t u = 0;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float from_bits(uint32_t u)
{
    float x = 0;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* A normal half has the bits of a float, shifted, with 127 - 15 less in the
 * exponent; a subnormal one is a number of steps of 2^-24. */
static float half_to_float(uint16_t h)
{
    uint32_t u = h & 0x7fffu, sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t normal = (u << 13) + (112u << 23);
    uint32_t subnormal = bits((float)u * 0x1p-24f);
    uint32_t special = u << 13 | 0x7f800000u;
    uint32_t finite = u < 0x0400u ? subnormal : normal;

    return from_bits((u < 0x7c00u ? finite : special) | sign);
}

/* To nearest, ties to even; a value that is too large becomes infinite. */
static uint16_t half_from_float(float x)
{
    uint32_t sign = bits(x) >> 16 & 0x8000u, u = bits(x) & 0x7fffffffu;

    if (u > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u); /* not a number */
    if (u >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u); /* from 65520: infinite */
    if (u < 0x38800000u) /* below 2^-14: 0.5 + |x| rounds to steps of 2^-24 */
        return (uint16_t)(sign | (bits(0.5f + from_bits(u)) - bits(0.5f)));
    u += 0xfffu + (u >> 13 & 1);
    return (uint16_t)(sign | (u - 0x38000000u) >> 13);
}

void bm_store_unpack(bm_store store, const void *from, float *x, size_t rows,
                     size_t features, const float *scale, const float *offset)
{
    size_t n = rows * features;

    if (store == BM_STORE_F32 && n > 0) {
        memcpy(x, from, n * sizeof *x);
    } else if (store == BM_STORE_F16) {
        const uint16_t *h = from;
        for (size_t i = 0; i < n; i++)
            x[i] = half_to_float(h[i]);
    } else if (store == BM_STORE_U8) {
        const uint8_t *u = from;
        for (size_t t = 0; t < rows; t++, u += features, x += features)
            for (size_t d = 0; d < features; d++)
                x[d] = offset[d] + scale[d] * (float)u[d];
    }
}

static bool halves_finite(const uint16_t *h, size_t n)
{
    unsigned bad = 0;

    for (size_t i = 0; i < n; i++)
        bad |= (h[i] & 0x7c00u) == 0x7c00u;
    return bad == 0;
}

/* Rounded sums are monotonic in the byte: it is enough to look at both ends. */
static bool bytes_finite(const bm_stored *p, size_t rows, size_t features)
{
    const uint8_t *u = p->x;

    for (size_t d = 0; d < features; d++) {
        if (isfinite(p->offset[d] + p->scale[d] * 255.f))
            continue;
        for (size_t t = 0; t < rows; t++)
            if (!isfinite(p->offset[d] +
                          p->scale[d] * (float)u[t * features + d]))
                return false;
    }
    return true;
}

bool bm_stored_finite(const bm_stored *p, size_t rows, size_t features)
{
    if (p->bytes == sizeof(float))
        return bm_all_finite(p->x, rows * features);
    if (p->bytes == sizeof(uint16_t))
        return halves_finite(p->x, rows * features);
    return bytes_finite(p, rows, features);
}

static size_t pack_half(const float *x, size_t n, uint16_t *to)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = half_from_float(x[i]);
        if ((to[i] & 0x7fff) == 0x7c00 && isfinite(x[i]))
            return i;
    }
    return n;
}

static size_t pack_byte(const float *x, size_t n, double scale, double offset,
                        uint8_t *to)
{
    for (size_t i = 0; i < n; i++) {
        double q = nearbyint((x[i] - offset) / scale);
        if (!(q >= 0 && q <= 255))
            return i;
        to[i] = (uint8_t)q;
    }
    return n;
}

size_t bm_store_pack(bm_store store, const float *x, size_t n, double scale,
                     double offset, void *to)
{
    if (store == BM_STORE_F16)
        return pack_half(x, n, to);
    if (store == BM_STORE_U8)
        return pack_byte(x, n, scale, offset, to);
    if (n > 0)
        memcpy(to, x, n * sizeof *x);
    return n;
}
