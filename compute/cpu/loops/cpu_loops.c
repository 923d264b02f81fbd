/*
 * cpu_loops.c - elementwise arithmetic, without branches and calls, so that the
 * compiler vectorises it. Compiled once for each instruction set, see
 * cpu_isa.h.
 */
#include "compute/cpu/loops/cpu_isa.h"
#include "core/rng.h"

#include <math.h>
#include <string.h>

/* Fused, with one rounding, where the instruction set has it. */
#ifdef __FMA__
#define MADD(a, b, c) fmaf(a, b, c)
#endif

#include "compute/cpu/loops/cpu_exp.h"

/* 1 / (1 + e^-x), with -x clamped to where e^-x is a float. */
static inline float sigmoid(float x)
{
    float a = -x, power, r;
    int32_t n;

    a = a > 88.37f ? 88.37f : a;
    a = a < -88.37f ? -88.37f : a;
    r = bm_exp_reduce(a, &n);
    power = bm_exp_power(n);
    return 1 / (1 + MADD(power, bm_exp_curve(r), power));
}

/* e / (e + 2) with e = e^2|x| - 1, which is accurate near zero. */
static inline float tangent(float x)
{
    float a = 2 * fabsf(x), power, r, e;
    int32_t n;

    a = a > 20 ? 20 : a; /* 1, to the last bit */
    r = bm_exp_reduce(a, &n);
    power = bm_exp_power(n);
    e = MADD(power, bm_exp_curve(r), power - 1);
    return copysignf(e / (e + 2), x);
}

/*
 * Phi(-a) / e for 0 <= a <= 13.2, with Phi, the distribution function of normal
 * numbers, and *e = e^(-a^2/2): a minimax polynomial in u = 2t - 1 times t = 1 /
 * (1 + 0.27 a), of relative error 2.3e-8. The square of a float of 12 bits is
 * exact, so that *e has no error of a^2 / 2 units.
 */
static inline float normal_tail(float a, float *e)
{
    float near = bm_float_of(bm_bits_of(a) & 0xfffff000u), power, r;
    float t = 1 / MADD(0.27f, a, 1), u = 2 * t - 1, p = 1.125753251e-4f;
    int32_t n;

    r = bm_exp_reduce(-0.5f * (near * near), &n);
    r = MADD(0.5f * (near - a), near + a, r);
    power = bm_exp_power(n);
    *e = MADD(power, bm_exp_curve(r), power);
    p = MADD(p, u, -8.198175904e-5f);
    p = MADD(p, u, -1.097100885e-3f);
    p = MADD(p, u, -6.621612795e-4f);
    p = MADD(p, u, 9.051881154e-3f);
    p = MADD(p, u, 3.914171802e-2f);
    p = MADD(p, u, 9.348713923e-2f);
    p = MADD(p, u, 1.577428614e-1f);
    p = MADD(p, u, 2.023050803e-1f);
    return p * t;
}

/* |x|, up to where a Phi(-a) is no normal float. */
static inline float clamped(float x)
{
    float a = fabsf(x);

    return a > 13.2f ? 13.2f : a;
}

static void loop_axpby(size_t n, float a, const float *x, float b, float *y)
{
    if (a == 0 && b == 0)
        memset(y, 0, n * sizeof *y);
    else if (b == 0)
        for (size_t i = 0; i < n; i++)
            y[i] = a * x[i];
    else if (a == 0)
        for (size_t i = 0; i < n; i++)
            y[i] = b * y[i];
    else
        for (size_t i = 0; i < n; i++)
            y[i] = a * x[i] + b * y[i];
}

/* Four rows at a time, in order: y is read and written less often. */
static void loop_add_rows(size_t rows, size_t n, size_t apart,
                          const float *restrict x, float *restrict y)
{
    for (; rows >= 4; rows -= 4, x += 4 * apart)
        for (size_t i = 0; i < n; i++)
            y[i] = y[i] + x[i] + x[apart + i] + x[2 * apart + i] +
                   x[3 * apart + i];
    for (; rows > 0; rows--, x += apart)
        for (size_t i = 0; i < n; i++)
            y[i] += x[i];
}

static void loop_activate(bm_activation f, size_t n, const float *x, float *y)
{
    switch (f) {
    case BM_IDENTITY:
        memmove(y, x, n * sizeof *y);
        break;
    case BM_RELU:
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] < 0 ? 0 : x[i];
        break;
    case BM_LEAKY_RELU:
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] < 0 ? BM_LEAK * x[i] : x[i];
        break;
    case BM_TANH:
        for (size_t i = 0; i < n; i++)
            y[i] = tangent(x[i]);
        break;
    case BM_SIGMOID:
        for (size_t i = 0; i < n; i++)
            y[i] = sigmoid(x[i]);
        break;
    }
}

static void loop_activate_back(bm_activation f, size_t n, const float *y,
                               const float *dy, float *dx)
{
    switch (f) {
    case BM_IDENTITY:
        memmove(dx, dy, n * sizeof *dx);
        break;
    case BM_RELU:
        for (size_t i = 0; i < n; i++)
            dx[i] = y[i] > 0 ? dy[i] : 0;
        break;
    case BM_LEAKY_RELU:
        for (size_t i = 0; i < n; i++)
            dx[i] = y[i] > 0 ? dy[i] : BM_LEAK * dy[i];
        break;
    case BM_TANH:
        for (size_t i = 0; i < n; i++)
            dx[i] = dy[i] * (1 - y[i] * y[i]);
        break;
    case BM_SIGMOID:
        for (size_t i = 0; i < n; i++)
            dx[i] = dy[i] * (y[i] * (1 - y[i]));
        break;
    }
}

static void loop_gate(size_t n, const float *a, const float *b, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] * sigmoid(b[i]);
}

static void loop_gate_back(size_t n, const float *a, const float *b,
                           const float *dy, float *da, float *db)
{
    for (size_t i = 0; i < n; i++) {
        float d = dy[i], s = sigmoid(b[i]), slope = d * a[i] * (s * (1 - s));

        da[i] = d * s;
        db[i] = slope;
    }
}

/* f' = s + x s (1 - s), s = sigmoid(x). */
static void loop_swish_back(size_t n, const float *x, const float *dy,
                            float *dx)
{
    for (size_t i = 0; i < n; i++) {
        float s = sigmoid(x[i]);

        dx[i] = dy[i] * (s + x[i] * (s * (1 - s)));
    }
}

/* x Phi(x) = max(x, 0) - |x| Phi(-|x|) */
static void loop_gelu(size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++) {
        float a = clamped(x[i]), e, tail = normal_tail(a, &e);

        y[i] = (x[i] > 0 ? x[i] : 0) - a * tail * e;
    }
}

/* f' = Phi(x) + x phi(x), with the density phi; f'(x) + f'(-x) = 1. */
static void loop_gelu_back(size_t n, const float *x, const float *dy, float *dx)
{
    for (size_t i = 0; i < n; i++) {
        float a = clamped(x[i]), e, tail = normal_tail(a, &e);
        float slope = e * (tail - BM_NORMAL_PEAK * a); /* f'(-a) */

        dx[i] = dy[i] * (x[i] < 0 ? slope : 1 - slope);
    }
}

/* Four at a time, in order: y is read and written less often. */
static void loop_taps(size_t count, size_t n, const float *restrict x,
                      ptrdiff_t apart_x, const float *restrict w,
                      ptrdiff_t apart_w, float *restrict y)
{
    for (; count >= 4; count -= 4, x += 4 * apart_x, w += 4 * apart_w)
        for (size_t i = 0; i < n; i++) {
            const float *p = x + i, *q = w + i;

            y[i] = y[i] + p[0] * q[0] + p[apart_x] * q[apart_w] +
                   p[2 * apart_x] * q[2 * apart_w] +
                   p[3 * apart_x] * q[3 * apart_w];
        }
    for (; count > 0; count--, x += apart_x, w += apart_w)
        for (size_t i = 0; i < n; i++)
            y[i] += x[i] * w[i];
}

static void loop_dropout(size_t n, float p, uint64_t key, size_t first,
                         const float *x, float *y)
{
    float scale = 1 / (1 - p);

    for (size_t i = 0; i < n; i++) {
        float u = (float)(int32_t)(bm_rng_at(key, first + i) >> 40) * 0x1p-24f;
        y[i] = u < p ? 0 : x[i] * scale;
    }
}

/* bf16 is the upper half of a float; adding half of its last place, minus one
 * bit if it is even, rounds to nearest even. NaN stays NaN. */
static inline uint32_t round_bits(float x)
{
    uint32_t bits = bm_bits_of(x);
    uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);

    return (x == x ? rounded : bits | 0x400000u) & 0xffff0000u;
}

static void loop_round_bf16(size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = bm_float_of(round_bits(x[i]));
}

static void loop_to_bf16(size_t n, const float *x, uint16_t *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (uint16_t)(round_bits(x[i]) >> 16);
}

/* Squares of floats are exact in doubles; 16 sums in a fixed order. */
static double loop_squares(size_t n, const float *x)
{
    enum { LANES = 16 };
    double sum[LANES] = {0};
    size_t whole = n - n % LANES;

    for (size_t i = 0; i < whole; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            sum[k] += (double)x[i + k] * x[i + k];
    for (size_t i = whole; i < n; i++)
        sum[i - whole] += (double)x[i] * x[i];
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t k = 0; k < half; k++)
            sum[k] += sum[k + half];
    return sum[0];
}

static void loop_momentum(const bm_momentum *m, float scale, size_t n,
                          const float *restrict g, float *restrict v,
                          float *restrict w)
{
    float rate = m->rate, mu = m->momentum, decay = m->decay;

    if (m->nesterov)
        for (size_t i = 0; i < n; i++) {
            float step = rate * (g[i] * scale + decay * w[i]);
            v[i] = mu * v[i] - step;
            w[i] += mu * v[i] - step;
        }
    else
        for (size_t i = 0; i < n; i++) {
            float step = rate * (g[i] * scale + decay * w[i]);
            v[i] = mu * v[i] - step;
            w[i] += v[i];
        }
}

static void loop_adam(const bm_adam_factors *f, size_t n,
                      const float *restrict g, float *restrict m,
                      float *restrict v, float *restrict w)
{
    const bm_adam_factors by = *f; /* a copy: outputs cannot alias it */

    for (size_t i = 0; by.rms && i < n; i++) {
        float x = by.scale * g[i] + by.decay * w[i];
        v[i] = by.old2 * v[i] + by.new2 * x * x;
        m[i] = by.old1 * m[i] + x / (sqrtf(v[i]) + by.epsilon);
        w[i] -= by.rate * m[i];
    }
    for (size_t i = 0; !by.rms && i < n; i++) {
        float x = by.scale * g[i];
        m[i] = by.old1 * m[i] + by.new1 * x;
        v[i] = by.old2 * v[i] + by.new2 * x * x;
        w[i] = by.keep * w[i] -
               by.by * m[i] / (by.root * sqrtf(v[i]) + by.epsilon);
    }
}

/* Sums in this number of lanes have one order on every instruction set. */
enum { SUMS = 16 };

static float fold(float sum[SUMS])
{
    for (size_t half = SUMS / 2; half > 0; half /= 2)
        for (size_t k = 0; k < half; k++)
            sum[k] += sum[k + half];
    return sum[0];
}

static float sum_of(size_t n, const float *x)
{
    float sum[SUMS] = {0};
    size_t whole = n - n % SUMS;

    for (size_t i = 0; i < whole; i += SUMS)
        for (size_t k = 0; k < SUMS; k++)
            sum[k] += x[i + k];
    for (size_t i = whole; i < n; i++)
        sum[i - whole] += x[i];
    return fold(sum);
}

/* The sum of (x - mean)^2. */
static float spread_of(size_t n, const float *x, float mean)
{
    float sum[SUMS] = {0};
    size_t whole = n - n % SUMS;

    for (size_t i = 0; i < whole; i += SUMS)
        for (size_t k = 0; k < SUMS; k++)
            sum[k] += (x[i + k] - mean) * (x[i + k] - mean);
    for (size_t i = whole; i < n; i++)
        sum[i - whole] += (x[i] - mean) * (x[i] - mean);
    return fold(sum);
}

static float dot_of(size_t n, const float *x, const float *y)
{
    float sum[SUMS] = {0};
    size_t whole = n - n % SUMS;

    for (size_t i = 0; i < whole; i += SUMS)
        for (size_t k = 0; k < SUMS; k++)
            sum[k] += x[i + k] * y[i + k];
    for (size_t i = whole; i < n; i++)
        sum[i - whole] += x[i] * y[i];
    return fold(sum);
}

static float largest_of(size_t n, const float *x)
{
    float top[SUMS];
    size_t whole = n - n % SUMS;

    for (size_t k = 0; k < SUMS; k++)
        top[k] = -INFINITY;
    for (size_t i = 0; i < whole; i += SUMS)
        for (size_t k = 0; k < SUMS; k++)
            top[k] = x[i + k] > top[k] ? x[i + k] : top[k];
    for (size_t i = whole; i < n; i++)
        top[i - whole] = x[i] > top[i - whole] ? x[i] : top[i - whole];
    for (size_t k = 1; k < SUMS; k++)
        top[0] = top[k] > top[0] ? top[k] : top[0];
    return top[0];
}

/* e^x for x <= 0; below -87, where it leaves the normal numbers, 0. */
static inline float exponential(float x)
{
    float a = x < -87 ? -87 : x, power, r;
    int32_t n;

    r = bm_exp_reduce(a, &n);
    power = bm_exp_power(n);
    return x < -87 ? 0 : MADD(power, bm_exp_curve(r), power);
}

static void loop_attend(size_t n, float scale, const float *restrict r,
                        float *restrict s)
{
    float top = 0, factor = 0;

    for (size_t i = 0; i < n; i++)
        s[i] = scale * (s[i] + r[i]);
    top = largest_of(n, s);
    for (size_t i = 0; i < n; i++)
        s[i] = exponential(s[i] - top);
    factor = 1 / sum_of(n, s);
    for (size_t i = 0; i < n; i++)
        s[i] *= factor;
}

/* Of a softmax s: s (d - sum of s d). */
static void loop_attend_back(size_t n, float scale, const float *restrict s,
                             float *restrict d, float *restrict dr)
{
    float mean = dot_of(n, s, d);

    for (size_t i = 0; i < n; i++)
        dr[i] = d[i] = scale * (s[i] * (d[i] - mean));
}

static void loop_layernorm(size_t n, const float *restrict x,
                           const float *restrict gamma,
                           const float *restrict beta, float *restrict y,
                           float moments[2])
{
    float mean = sum_of(n, x) / (float)n, var = 0, scale = 0;

    var = spread_of(n, x, mean) / (float)n;
    scale = 1 / sqrtf(var + (float)BM_NORM_EPSILON);
    for (size_t i = 0; i < n; i++)
        y[i] = gamma[i] * ((x[i] - mean) * scale) + beta[i];
    moments[0] = mean;
    moments[1] = scale;
}

/* With z = (x - mean) scale and g = gamma dy: dx = scale (g - mean of g -
 * z mean of g z). */
static void loop_layernorm_back(size_t n, const float *restrict x,
                                const float moments[2],
                                const float *restrict gamma,
                                const float *restrict dy, float *restrict dx,
                                float *restrict dgamma, float *restrict dbeta)
{
    float mean = moments[0], scale = moments[1];
    float plain[SUMS] = {0}, along[SUMS] = {0}, a = 0, b = 0;
    size_t whole = n - n % SUMS;

    for (size_t i = 0; i < n; i++) {
        dgamma[i] += dy[i] * ((x[i] - mean) * scale);
        dbeta[i] += dy[i];
    }
    if (dx == NULL)
        return;
    for (size_t i = 0; i < whole; i += SUMS)
        for (size_t k = 0; k < SUMS; k++) {
            float g = gamma[i + k] * dy[i + k];
            plain[k] += g;
            along[k] += g * ((x[i + k] - mean) * scale);
        }
    for (size_t i = whole; i < n; i++) {
        float g = gamma[i] * dy[i];
        plain[i - whole] += g;
        along[i - whole] += g * ((x[i] - mean) * scale);
    }
    a = fold(plain) / (float)n;
    b = fold(along) / (float)n;
    for (size_t i = 0; i < n; i++)
        dx[i] = scale * (gamma[i] * dy[i] - a - (x[i] - mean) * scale * b);
}

static void loop_lstm(size_t n, float *restrict gates, const float *restrict b,
                      const float *restrict c0, float *restrict c,
                      float *restrict h)
{
    float *restrict gi = gates, *restrict gf = gates + n;
    float *restrict gg = gates + 2 * n, *restrict go = gates + 3 * n;

    for (size_t j = 0; j < n; j++) {
        float before = c0 != NULL ? c0[j] : 0;
        gi[j] = sigmoid(gi[j] + b[j]);
        gf[j] = sigmoid(gf[j] + b[n + j]);
        gg[j] = tangent(gg[j] + b[2 * n + j]);
        go[j] = sigmoid(go[j] + b[3 * n + j]);
        c[j] = MADD(gf[j], before, gi[j] * gg[j]);
        h[j] = go[j] * tangent(c[j]);
    }
}

static void loop_lstm_back(size_t n, float *restrict gates,
                           const float *restrict c0, const float *restrict c,
                           const float *restrict dh0, const float *restrict dh1,
                           float *restrict dc)
{
    float *restrict gi = gates, *restrict gf = gates + n;
    float *restrict gg = gates + 2 * n, *restrict go = gates + 3 * n;

    for (size_t j = 0; j < n; j++) {
        float before = c0 != NULL ? c0[j] : 0;
        float i = gi[j], f = gf[j], g = gg[j], o = go[j];
        float dh = dh0[j] + dh1[j], out = tangent(c[j]);
        float d = dc[j] + dh * o * (1 - out * out);
        gi[j] = d * g * (i * (1 - i));
        gf[j] = d * before * (f * (1 - f));
        gg[j] = d * i * (1 - g * g);
        go[j] = dh * out * (o * (1 - o));
        dc[j] = d * f;
    }
}

static void loop_gru(size_t n, float *restrict gates,
                     const float *restrict moved, const float *restrict b,
                     const float *restrict h0, float *restrict h)
{
    float *restrict gr = gates, *restrict gz = gates + n;
    float *restrict gn = gates + 2 * n, *restrict gq = gates + 3 * n;

    for (size_t j = 0; j < n; j++) {
        float before = h0 != NULL ? h0[j] : 0;
        gr[j] = sigmoid(gr[j] + moved[j] + b[j]);
        gz[j] = sigmoid(gz[j] + moved[n + j] + b[n + j]);
        gq[j] = moved[2 * n + j] + b[3 * n + j];
        gn[j] = tangent(MADD(gr[j], gq[j], gn[j] + b[2 * n + j]));
        h[j] = MADD(gz[j], before - gn[j], gn[j]);
    }
}

static void loop_gru_back(size_t n, float *restrict gates,
                          const float *restrict h0, const float *restrict dh0,
                          const float *restrict dh1, float *restrict dh,
                          float *restrict moved)
{
    float *restrict gr = gates, *restrict gz = gates + n;
    float *restrict gn = gates + 2 * n, *restrict gq = gates + 3 * n;

    for (size_t j = 0; j < n; j++) {
        float before = h0 != NULL ? h0[j] : 0;
        float r = gr[j], z = gz[j], out = gn[j];
        float d = dh0[j] + dh1[j] + dh[j];
        float dn = d * (1 - z) * (1 - out * out);
        moved[j] = gr[j] = dn * gq[j] * (r * (1 - r));
        moved[n + j] = gz[j] = d * (before - out) * (z * (1 - z));
        moved[2 * n + j] = gq[j] = dn * r;
        gn[j] = dn;
        dh[j] = d * z;
    }
}

const bm_loops BM_OF_ISA(bm_loops, BM_ISA) = {
    .axpby = loop_axpby,
    .add_rows = loop_add_rows,
    .activate = loop_activate,
    .activate_back = loop_activate_back,
    .gate = loop_gate,
    .gate_back = loop_gate_back,
    .swish_back = loop_swish_back,
    .gelu = loop_gelu,
    .gelu_back = loop_gelu_back,
    .taps = loop_taps,
    .dropout = loop_dropout,
    .round_bf16 = loop_round_bf16,
    .to_bf16 = loop_to_bf16,
    .squares = loop_squares,
    .momentum = loop_momentum,
    .adam = loop_adam,
    .layernorm = loop_layernorm,
    .layernorm_back = loop_layernorm_back,
    .attend = loop_attend,
    .attend_back = loop_attend_back,
    .lstm = loop_lstm,
    .lstm_back = loop_lstm_back,
    .gru = loop_gru,
    .gru_back = loop_gru_back,
};
