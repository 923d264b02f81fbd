#include "io/model/safetensors_parts.h"

#include "core/finite.h"

#include <math.h>
#include <string.h>

/* Headers and tensors are copied from memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "safetensors needs a little-endian machine");

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [BM_F64] = {"F64", 8}, [BM_F32] = {"F32", 4}, [BM_I64] = {"I64", 8},
    [BM_U8] = {"U8", 1},   [BM_F16] = {"F16", 2}, [BM_I8] = {"I8", 1},
};

size_t bm_dtype_size(bm_dtype t)
{
    return dtypes[t].size;
}

const char *bm_dtype_name(bm_dtype t)
{
    return dtypes[t].name;
}

bool bm_dtype_parse(const char *name, bm_dtype *out)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(dtypes[i].name, name) == 0) {
            *out = (bm_dtype)i;
            return true;
        }
    return false;
}

bool bm_st_multiply(uint64_t a, uint64_t b, uint64_t *out)
{
    if (b != 0 && a > UINT64_MAX / b)
        return false;
    *out = a * b;
    return true;
}

static size_t first_bad_float(const float *x, size_t n)
{
    enum { RUN = 1024 };

    for (size_t from = 0; from < n; from += RUN) {
        size_t to = n - from < RUN ? n : from + RUN;

        if (bm_all_finite(x + from, to - from))
            continue;
        while (isfinite(x[from]))
            from++;
        return from;
    }
    return n;
}

static size_t first_bad_double(const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return i;
    return n;
}

/* An exponent of ones alone is that of infinity and NaN. */
static size_t first_bad_half(const uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((x[i] & 0x7c00) == 0x7c00)
            return i;
    return n;
}

size_t bm_st_first_not_finite(bm_dtype t, const void *x, size_t n)
{
    switch (t) {
    case BM_F32:
        return first_bad_float(x, n);
    case BM_F64:
        return first_bad_double(x, n);
    case BM_F16:
        return first_bad_half(x, n);
    default:
        return n;
    }
}

void bm_st_seal(XXH128_hash_t sum, unsigned char seal[BM_ST_SEAL_SIZE])
{
    static const unsigned char start[16] = {'B', 'M', 'U', 'F', 'S',
                                            'U', 'M', '1', 1};
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical, sum);
    memcpy(seal, start, sizeof start);
    memcpy(seal + sizeof start, &canonical, sizeof canonical);
}
