/*
 * sum_loops.h - the arithmetic of the ordered sum, compiled once for each
 * instruction set (core/isa.h). All of them give the same bits: doubles, no
 * fused multiply-adds, a fixed order.
 */
#ifndef BM_COMM_SUM_SUM_LOOPS_H
#define BM_COMM_SUM_SUM_LOOPS_H

#include "core/isa.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct bm_sum_loops {
    void (*copy)(size_t n, const float *x, float *y); /* y = x */
    /* y = a y + b x: two products and a sum in double, then rounded to float.
     * All rounding of means is done here. */
    void (*blend)(size_t n, double a, float *y, double b, const float *x);
    bool (*add)(size_t n, const float *x,
                float *y); /* y += x; true: all finite */
    /* The largest |x|; infinity if an element is infinite or NaN. */
    float (*largest)(size_t n, const float *x);
    /* Adds weight x scale: its integer part to high, 2^48 times the rest,
     * truncated, to low. */
    void (*digits)(size_t n, double weight, const float *x, double scale,
                   int64_t *high, int64_t *low);
    /* x = (high + 2^-48 low) scale. */
    void (*number)(size_t n, const int64_t *high, const int64_t *low,
                   double scale, float *x);
    void (*add_ints)(size_t n, const int64_t *x, int64_t *y); /* y += x */
} bm_sum_loops;

/* The loops for this machine, or for BMUF_ISA. Fails as bm_isa_choose. */
BM_CHECKED bm_status bm_sum_loops_choose(const bm_sum_loops **out);

/* y, a mean of weight wy, becomes the mean of y and x, which has weight wx. */
static inline void bm_sum_loops_blend(const bm_sum_loops *loops, float *y,
                                      double wy, const float *x, double wx,
                                      size_t n)
{
    if (wx == 0)
        return;
    if (wy == 0 && y != x)
        memcpy(y, x, n * sizeof *y);
    if (wy > 0)
        loops->blend(n, wy / (wy + wx), y, wx / (wy + wx), x);
}

#define X(isa) extern const bm_sum_loops bm_sum_loops_##isa;
BM_ISAS(X)
#undef X

#endif
