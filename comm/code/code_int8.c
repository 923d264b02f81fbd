/*
 * code_int8.c - for every 256 numbers a unit, u = max |x| / 127, and
 *
 *     q = x / u, rounded to a whole number from -127 to 127    x^ = q u
 */
#include "comm/code/code.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = 256, MOST = 127 };

static size_t bytes(const bm_code *c, size_t n)
{
    (void)c;
    return (n + BLOCK - 1) / BLOCK * sizeof(float) + n;
}

/* 127 of them are a float. Without their signs numbers are in the order of
 * their bits. */
static float unit_of(size_t n, const float *x)
{
    int32_t largest = 0;
    float most = 0, unit = 0;

    for (size_t i = 0; i < n; i++) {
        int32_t bits = 0;

        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffff;
        largest = bits > largest ? bits : largest;
    }
    memcpy(&most, &largest, sizeof most);
    unit = most / MOST;
    return isfinite(unit * MOST) ? unit : nextafterf(unit, 0);
}

/* Of the smallest numbers a unit is a rounded one, or none: then all are 0. */
static void round_all(size_t n, const float *restrict x, float unit,
                      int8_t *restrict out)
{
    const float whole = 0x1.8p23F; /* beside it a float has no room for less */

    for (size_t i = 0; i < n; i++) {
        float q = x[i] / unit + whole - whole;

        q = q < MOST ? q : MOST;
        out[i] = (int8_t)(q > -MOST ? q : -MOST);
    }
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
        if (unit > 0)
            round_all(m, x + at, unit, (int8_t *)out);
        else
            memset(out, 0, m);
        out += m;
    }
}

static void multiply(size_t n, const int8_t *restrict q, float unit,
                     float *restrict x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)q[i] * unit;
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
        multiply(m, (const int8_t *)in, unit, x + at);
        in += m;
    }
}

const bm_code_ops BM_OF_ISA(bm_code_int8, BM_ISA) = {
    .name = "int8",
    .help = "a byte a weight, and a scale for every 256",
    .bytes = bytes,
    .encode = encode,
    .decode = decode,
};
