/*
 * cpu_loss_loops.h - the inner loops of the losses. cpu_ctc.c has the formulas
 * of most of them; cpu_isa.h describes how they are compiled and chosen. The
 * bits are the same for every instruction set.
 */
#ifndef BM_COMPUTE_CPU_LOOPS_CPU_LOSS_LOOPS_H
#define BM_COMPUTE_CPU_LOOPS_CPU_LOSS_LOOPS_H

#include "core/isa.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Numbers m 2^e, with m a float near 1 and e an integer: they represent
 * probabilities of thousands of frames without logarithms, to all 24 bits. Zero
 * is represented by e = BM_NEVER.
 */
typedef struct bm_wide {
    float *m;
    int32_t *e;
} bm_wide;

/* Exponents: of zero, such that a sum of seven of them fits in 32 bits; and of
 * the smallest probability of a sequence that is not skipped, far above zero's.
 */
enum { BM_NEVER = -(1 << 28), BM_LEAST = BM_NEVER / 8 };

/* The numbers from x[i] on. */
static inline bm_wide bm_wide_at(bm_wide x, size_t i)
{
    bm_wide y = {x.m + i, x.e + i};
    return y;
}

typedef struct bm_loss_loops {
    /* exp(x[i] - top), in `wide` and, flushed to 0 below 2^-126, in p, with an
     * error of at most 2 units in the last place. Returns the sum of p, NaN if
     * an x is NaN. x - top <= 0; below -2e6 it counts as -infinity. */
    float (*exp)(size_t n, const float *x, float top, bm_wide wide, float *p);
    float (*largest)(size_t n, const float *x); /* n > 0 */
    float (*sum)(size_t n, const float *x);

    /* out[i] = (x[i] + y[i]) u, with one u = um 2^ue for all */
    void (*forward_blank)(size_t n, bm_wide x, bm_wide y, float um, int32_t ue,
                          bm_wide out);
    /* out[i] = (x[i] + y[i] + z[i] 2^skip[i]) u[i] */
    void (*forward_symbol)(size_t n, bm_wide x, bm_wide y, bm_wide z,
                           const int32_t *skip, bm_wide u, bm_wide out);

    /* b = x + y, q = a b / 2^scale, out = b u */
    void (*backward_blank)(size_t n, bm_wide x, bm_wide y, bm_wide a,
                           int32_t scale, float um, int32_t ue, float *q,
                           bm_wide out);
    /* b[i] = x[i] + y[i] + z[i] 2^skip[i]; q and out as before, with u[i] */
    void (*backward_symbol)(size_t n, bm_wide x, bm_wide y, bm_wide z,
                            const int32_t *skip, bm_wide a, int32_t scale,
                            bm_wide u, float *q, bm_wide out);
} bm_loss_loops;

#define X(isa) extern const bm_loss_loops bm_loss_loops_##isa;
BM_ISAS(X)
#undef X

#endif
