/* sum_loops.c - loops that the compiler vectorizes. */
#include "comm/sum/sum_loops.h"

#include "core/finite.h"
#include "core/stream.h"

#include <math.h>

static inline size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void copy(size_t n, const float *x, float *y)
{
    for (; n >= BM_STRIDE; n -= BM_STRIDE, x += BM_STRIDE, y += BM_STRIDE) {
        bm_prefetch(x);
        memcpy(y, x, BM_STRIDE * sizeof *y);
    }
    if (n > 0)
        memcpy(y, x, n * sizeof *y);
}

static void blend(size_t n, double a, float *restrict y, double b,
                  const float *restrict x)
{
    for (size_t from = 0; from < n; from += BM_STRIDE) {
        bm_prefetch(x + from);
        for (size_t i = from; i < least(from + BM_STRIDE, n); i++)
            y[i] = (float)(a * y[i] + b * x[i]);
    }
}

static bool add(size_t n, const float *restrict x, float *restrict y)
{
    uint32_t non_finite = 0;

    for (size_t i = 0; i < n; i++) {
        float sum = y[i] + x[i];

        non_finite |= bm_non_finite(sum);
        y[i] = sum;
    }
    return non_finite == 0;
}

/* The bits of |x| are in the order of |x|, with infinity and NaN at the end. */
static float largest(size_t n, const float *x)
{
    const uint32_t infinite = 0x7f800000u;
    uint32_t most = 0;
    float out = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits = 0;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffffu;
        most = bits > most ? bits : most;
    }
    most = most < infinite ? most : infinite;
    memcpy(&out, &most, sizeof out);
    return out;
}

static void digits(size_t n, double weight, const float *restrict x,
                   double scale, int64_t *restrict high, int64_t *restrict low)
{
    for (size_t i = 0; i < n; i++) {
        double number = weight * (double)x[i] * scale;
        double digit = trunc(number);

        high[i] += (int64_t)digit;
        low[i] += (int64_t)((number - digit) * 0x1p48);
    }
}

static void number(size_t n, const int64_t *restrict high,
                   const int64_t *restrict low, double scale, float *restrict x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(((double)high[i] + (double)low[i] * 0x1p-48) * scale);
}

static void add_ints(size_t n, const int64_t *restrict x, int64_t *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

const bm_sum_loops BM_OF_ISA(bm_sum_loops, BM_ISA) = {
    .copy = copy,
    .blend = blend,
    .add = add,
    .largest = largest,
    .digits = digits,
    .number = number,
    .add_ints = add_ints,
};
