/*
 * code_int8.c - for every 256 numbers a scale, s = max |x| / 127, and
 *
 *     q = x / s, rounded to an integer from -127 to 127    x^ = q s
 */
#include "comm/code/code.h"
#include "comm/code/float_bits.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 256, MOST = 127 };

static size_t bytes(const bm_code *c, size_t n)
{
    (void)c;
    return (n + BLOCK - 1) / BLOCK * sizeof(float) + n;
}

/* max |x| / 127, a little less if 127 times that is not finite. */
static float scale_of(size_t n, const float *x)
{
    int32_t largest = 0;
    float scale = 0;

    for (size_t i = 0; i < n; i++) {
        int32_t bits = bm_magnitude(x[i]);
        largest = bits > largest ? bits : largest;
    }
    scale = bm_float_of(largest) / MOST;
    return isfinite(scale * MOST) ? scale : nextafterf(scale, 0);
}

/* For the smallest numbers the scale is rounded, or 0: then all q are 0. */
static void round_all(size_t n, const float *restrict x, float scale,
                      int8_t *restrict out)
{
    const float whole = 0x1.8p23F; /* adding it rounds to an integer */

    for (size_t i = 0; i < n; i++) {
        float q = x[i] / scale + whole - whole;

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
        float scale = scale_of(m, x + at);

        memcpy(out, &scale, sizeof scale);
        out += sizeof scale;
        if (scale > 0)
            round_all(m, x + at, scale, (int8_t *)out);
        else
            memset(out, 0, m);
        out += m;
    }
}

static void multiply(size_t n, const int8_t *restrict q, float scale,
                     float *restrict x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)q[i] * scale;
}

static void decode(const bm_code *c, size_t n, const void *code, float *x)
{
    const unsigned char *in = code;

    (void)c;
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t m = n - at < BLOCK ? n - at : BLOCK;
        float scale = 0;

        memcpy(&scale, in, sizeof scale);
        in += sizeof scale;
        multiply(m, (const int8_t *)in, scale, x + at);
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
