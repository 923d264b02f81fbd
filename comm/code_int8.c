/*
 * code_int8.c - for every 256 numbers a unit, u = max |x| / 127, and
 *
 *     q = x / u, rounded to a whole number from -127 to 127    x^ = q u
 */
#include "comm/code.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = 256, MOST = 127 };

static size_t bytes(const bm_code *c, size_t n)
{
    (void)c;
    return (n + BLOCK - 1) / BLOCK * sizeof(float) + n;
}

/* 127 of them are a float. */
static float unit_of(size_t n, const float *x)
{
    float most = 0, unit = 0;

    for (size_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(x[i]));
    unit = most / MOST;
    return isfinite(unit * MOST) ? unit : nextafterf(unit, 0);
}

/* Of the smallest numbers a unit is a rounded one, or none. */
static int8_t whole(float x, float unit)
{
    float q = unit > 0 ? rintf(x / unit) : 0;
    return (int8_t)fmaxf(-MOST, fminf(MOST, q));
}

static void encode(const bm_code *c, size_t n, const float *x, void *code)
{
    unsigned char *out = code;

    (void)c;
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t m = n - at < BLOCK ? n - at : BLOCK;
        float unit = unit_of(m, x + at);

        memcpy(out, &unit, sizeof unit);
        out += sizeof unit;
        for (size_t i = 0; i < m; i++)
            *out++ = (unsigned char)whole(x[at + i], unit);
    }
}

static void decode(const bm_code *c, size_t n, const void *code, float *x)
{
    const unsigned char *in = code;

    (void)c;
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t m = n - at < BLOCK ? n - at : BLOCK;
        float unit = 0;

        memcpy(&unit, in, sizeof unit);
        in += sizeof unit;
        for (size_t i = 0; i < m; i++)
            x[at + i] = (float)(int8_t)*in++ * unit;
    }
}

const bm_code_ops bm_code_int8 = {
    .name = "int8",
    .help = "a byte a weight, and a scale for every 256",
    .bytes = bytes,
    .encode = encode,
    .decode = decode,
};
