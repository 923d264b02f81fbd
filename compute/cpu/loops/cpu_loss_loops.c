/*
 * cpu_loss_loops.c - softmax, and arithmetic on arrays of numbers m 2^e,
 * without branches and calls, so that the compiler vectorises it. Compiled once
 * for each instruction set, see cpu_isa.h.
 */
#include "compute/cpu/loops/cpu_loss_loops.h"
#include "compute/cpu/loops/cpu_exp.h"

enum { LANES = 16 };

static inline int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* 2^n for n <= 127, and 0 below 2^-126. */
static inline float power(int32_t n)
{
    return bm_exp_power(larger(n, -127));
}

/* x 2^e, normalised: 1 <= m < 2. */
static inline void put(float x, int32_t e, float *m, int32_t *out)
{
    uint32_t bits = bm_bits_of(x);

    *m = bm_float_of((bits & 0x007fffffu) | 0x3f800000u);
    *out = larger(e + (int32_t)(bits >> 23) - 127, BM_NEVER);
}

static void split_exp(size_t n, const float *restrict x, float top,
                      float *restrict m, int32_t *restrict e, float *restrict p)
{
    const float least = -2e6f;

    for (size_t i = 0; i < n; i++) {
        float d = x[i] - top, r;
        int32_t exponent;

        d = d < least ? least : d;
        r = bm_exp_reduce(d, &exponent);
        m[i] = bm_exp_curve(r) + 1;
        e[i] = d > least ? exponent : BM_NEVER;
        p[i] = m[i] * power(e[i]);
    }
}

static float sum(size_t n, const float *x)
{
    float lane[LANES] = {0};
    size_t whole = n - n % LANES;

    for (size_t i = 0; i < whole; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lane[j] += x[i + j];
    for (size_t i = whole; i < n; i++)
        lane[i - whole] += x[i];
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++)
            lane[j] += lane[j + half];
    return lane[0];
}

static float largest(size_t n, const float *x)
{
    float lane[LANES];
    size_t whole = n - n % LANES;

    for (size_t j = 0; j < LANES; j++)
        lane[j] = x[0];
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
    for (size_t i = whole; i < n; i++)
        lane[0] = x[i] > lane[0] ? x[i] : lane[0];
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++)
            lane[j] = lane[j + half] > lane[j] ? lane[j + half] : lane[j];
    return lane[0];
}

static float wide_exp(size_t n, const float *x, float top, bm_wide wide,
                      float *p)
{
    split_exp(n, x, top, wide.m, wide.e, p);
    return sum(n, p);
}

/* Compilers honour `restrict` only on parameters. Without it an output might
 * alias an input, and they would not vectorise. */
static void add_two(size_t n, const float *restrict xm,
                    const int32_t *restrict xe, const float *restrict ym,
                    const int32_t *restrict ye, float um, int32_t ue,
                    float *restrict m, int32_t *restrict e)
{
    for (size_t i = 0; i < n; i++) {
        int32_t top = larger(xe[i], ye[i]);
        float v = xm[i] * power(xe[i] - top) + ym[i] * power(ye[i] - top);

        put(v * um, top + ue, &m[i], &e[i]);
    }
}

static void add_three(size_t n, const float *restrict xm,
                      const int32_t *restrict xe, const float *restrict ym,
                      const int32_t *restrict ye, const float *restrict zm,
                      const int32_t *restrict ze, const int32_t *restrict skip,
                      const float *restrict um, const int32_t *restrict ue,
                      float *restrict m, int32_t *restrict e)
{
    for (size_t i = 0; i < n; i++) {
        int32_t third = ze[i] + skip[i];
        int32_t top = larger(larger(xe[i], ye[i]), third);
        float v = xm[i] * power(xe[i] - top) + ym[i] * power(ye[i] - top) +
                  zm[i] * power(third - top);

        put(v * um[i], top + ue[i], &m[i], &e[i]);
    }
}

static void weigh_two(size_t n, const float *restrict xm,
                      const int32_t *restrict xe, const float *restrict ym,
                      const int32_t *restrict ye, const float *restrict am,
                      const int32_t *restrict ae, int32_t scale, float um,
                      int32_t ue, float *restrict q, float *restrict m,
                      int32_t *restrict e)
{
    for (size_t i = 0; i < n; i++) {
        int32_t top = larger(xe[i], ye[i]);
        float v = xm[i] * power(xe[i] - top) + ym[i] * power(ye[i] - top);

        q[i] = v * am[i] * power(top + ae[i] - scale);
        put(v * um, top + ue, &m[i], &e[i]);
    }
}

static void weigh_three(size_t n, const float *restrict xm,
                        const int32_t *restrict xe, const float *restrict ym,
                        const int32_t *restrict ye, const float *restrict zm,
                        const int32_t *restrict ze,
                        const int32_t *restrict skip, const float *restrict am,
                        const int32_t *restrict ae, int32_t scale,
                        const float *restrict um, const int32_t *restrict ue,
                        float *restrict q, float *restrict m,
                        int32_t *restrict e)
{
    for (size_t i = 0; i < n; i++) {
        int32_t third = ze[i] + skip[i];
        int32_t top = larger(larger(xe[i], ye[i]), third);
        float v = xm[i] * power(xe[i] - top) + ym[i] * power(ye[i] - top) +
                  zm[i] * power(third - top);

        q[i] = v * am[i] * power(top + ae[i] - scale);
        put(v * um[i], top + ue[i], &m[i], &e[i]);
    }
}

static void forward_blank(size_t n, bm_wide x, bm_wide y, float um, int32_t ue,
                          bm_wide out)
{
    add_two(n, x.m, x.e, y.m, y.e, um, ue, out.m, out.e);
}

static void forward_symbol(size_t n, bm_wide x, bm_wide y, bm_wide z,
                           const int32_t *skip, bm_wide u, bm_wide out)
{
    add_three(n, x.m, x.e, y.m, y.e, z.m, z.e, skip, u.m, u.e, out.m, out.e);
}

static void backward_blank(size_t n, bm_wide x, bm_wide y, bm_wide a,
                           int32_t scale, float um, int32_t ue, float *q,
                           bm_wide out)
{
    weigh_two(n, x.m, x.e, y.m, y.e, a.m, a.e, scale, um, ue, q, out.m, out.e);
}

static void backward_symbol(size_t n, bm_wide x, bm_wide y, bm_wide z,
                            const int32_t *skip, bm_wide a, int32_t scale,
                            bm_wide u, float *q, bm_wide out)
{
    weigh_three(n, x.m, x.e, y.m, y.e, z.m, z.e, skip, a.m, a.e, scale, u.m,
                u.e, q, out.m, out.e);
}

const bm_loss_loops BM_OF_ISA(bm_loss_loops, BM_ISA) = {
    .exp = wide_exp,
    .largest = largest,
    .sum = sum,
    .forward_blank = forward_blank,
    .forward_symbol = forward_symbol,
    .backward_blank = backward_blank,
    .backward_symbol = backward_symbol,
};
