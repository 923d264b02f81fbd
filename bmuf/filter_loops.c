/* filter_loops.c - loops that the compiler vectorizes. */
#include "bmuf/filter_loops.h"

#include "core/finite.h"
#include "core/stream.h"

#include <math.h>

/* The product of two floats is exact in double: the same bits either way. */
#ifdef __FMA__
#define MADD(a, b, c) fma(a, b, c)
#else
#define MADD(a, b, c) ((a) * (b) + (c))
#endif

static inline size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Elements are independent: g may be start. The sum of two floats has the same
 * bits in float and by way of double. */
static void block(size_t n, double eta, double zeta, double ahead,
                  const float *g, float *restrict model, float *restrict delta,
                  float *start)
{
    for (size_t from = 0; from < n; from += BM_STRIDE) {
        bm_prefetch(model + from);
        bm_prefetch(delta + from);
#pragma omp simd
        for (size_t i = from; i < least(from + BM_STRIDE, n); i++) {
            float change = (float)(eta * delta[i] + zeta * g[i]);
            float next = model[i] + change;

            delta[i] = change;
            model[i] = next;
            start[i] = (float)(next + ahead * change);
        }
    }
}

static void products(size_t n, const float *restrict a, const float *restrict b,
                     double sum[3])
{
    enum { SUMS = 16 };
    double aa[SUMS] = {0}, ab[SUMS] = {0}, bb[SUMS] = {0};
    size_t whole = n - n % SUMS;

    for (size_t i = 0; i < whole; i += SUMS)
        for (size_t k = 0; k < SUMS; k++) {
            double x = a[i + k], y = b[i + k];
            aa[k] = MADD(x, x, aa[k]);
            ab[k] = MADD(x, y, ab[k]);
            bb[k] = MADD(y, y, bb[k]);
        }
    for (size_t i = whole; i < n; i++) {
        double x = a[i], y = b[i];
        aa[i - whole] = MADD(x, x, aa[i - whole]);
        ab[i - whole] = MADD(x, y, ab[i - whole]);
        bb[i - whole] = MADD(y, y, bb[i - whole]);
    }
    for (size_t k = 0; k < SUMS; k++) {
        sum[0] += aa[k];
        sum[1] += ab[k];
        sum[2] += bb[k];
    }
}

static bool subtract(size_t n, const float *restrict a, const float *restrict b,
                     float *restrict y)
{
    uint32_t non_finite = 0;

    for (size_t from = 0; from < n; from += BM_STRIDE) {
        bm_prefetch(a + from);
        bm_prefetch(b + from);
        for (size_t i = from; i < least(from + BM_STRIDE, n); i++) {
            float x = a[i] - b[i];

            non_finite |= bm_non_finite(x);
            y[i] = x;
        }
    }
    return non_finite == 0;
}

const bm_filter_loops BM_OF_ISA(bm_filter_loops, BM_ISA) = {
    .block = block,
    .products = products,
    .subtract = subtract,
};
