/* filter_loops.c - written so that the compiler makes vectors of it. */
#include "bmuf/filter_loops.h"

/* g may be start. */
static void block(size_t n, double eta, double zeta, double ahead,
                  const float *g, float *restrict model, float *restrict delta,
                  float *start)
{
#pragma GCC ivdep
    for (size_t i = 0; i < n; i++) {
        float change = (float)(eta * delta[i] + zeta * g[i]);
        float next = (float)((double)model[i] + change);

        delta[i] = change;
        model[i] = next;
        start[i] = (float)(next + ahead * change);
    }
}

static double add_up(size_t n, double *sum)
{
    for (size_t half = n / 2; half > 0; half /= 2)
        for (size_t k = 0; k < half; k++)
            sum[k] += sum[k + half];
    return sum[0];
}

static void products(size_t n, const float *restrict a, const float *restrict b,
                     double sum[3])
{
    enum { LANES = 16 };
    double aa[LANES] = {0}, ab[LANES] = {0}, bb[LANES] = {0};
    size_t whole = n - n % LANES;

    for (size_t i = 0; i < whole; i += LANES)
        for (size_t k = 0; k < LANES; k++) {
            double x = a[i + k], y = b[i + k];
            aa[k] += x * x;
            ab[k] += x * y;
            bb[k] += y * y;
        }
    for (size_t i = whole; i < n; i++) {
        double x = a[i], y = b[i];
        aa[i - whole] += x * x;
        ab[i - whole] += x * y;
        bb[i - whole] += y * y;
    }
    sum[0] += add_up(LANES, aa);
    sum[1] += add_up(LANES, ab);
    sum[2] += add_up(LANES, bb);
}

const bm_filter_loops BM_OF_ISA(bm_filter_loops, BM_ISA) = {
    .block = block,
    .products = products,
};
