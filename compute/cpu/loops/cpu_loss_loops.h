/*
 * cpu_loss_loops.h - the inner loops of the losses. cpu_ctc.c says what most of
 * them are for; cpu_isa.h how they are compiled and chosen. The same bits for
 * every instruction set.
 */
#ifndef BM_COMPUTE_CPU_LOOPS_CPU_LOSS_LOOPS_H
#define BM_COMPUTE_CPU_LOOPS_CPU_LOSS_LOOPS_H

#include "core/isa.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Numbers m 2^e, with m a float of about 1 and e an integer: what a probability
 * is after thousands of frames, without logarithms and to all 24 bits.
 * 2^BM_NEVER is as good as 0, which there is no other way to write.
 */
typedef struct bm_wide {
    float *m;
    int32_t *e;
} bm_wide;

/* Exponents: of what stands for 0, where a sum of seven stays within 32 bits;
 * and of the least probability of a sequence that is not skipped, so far above
 * that no zero is taken for it. */
enum { BM_NEVER = -(1 << 28), BM_LEAST = BM_NEVER / 8 };

/* From number i on. */
static inline bm_wide bm_wide_at(bm_wide x, size_t i)
{
    bm_wide y = {x.m + i, x.e + i};
    return y;
}

typedef struct bm_loss_loops {
    /* exp(x[i] - top), both wide and, flushed to 0 below 2^-126, as it is, off
     * by at most 2 units in the last place; the sum of the latter is returned.
     * x - top <= 0; below -2e6 it counts as -infinity; if one of them is no
     * number neither is the sum. */
    float (*exp)(size_t n, const float *x, float top, bm_wide wide, float *p);
    float (*largest)(size_t n, const float *x); /* n > 0 */
    float (*sum)(size_t n, const float *x);

    /* out = (x + y) u, for one u. */
    void (*forward_blank)(size_t n, bm_wide x, bm_wide y, float um, int32_t ue,
                          bm_wide out);
    /* out[i] = (x[i] + y[i] + z[i] 2^skip[i]) u[i] */
    void (*forward_symbol)(size_t n, bm_wide x, bm_wide y, bm_wide z,
                           const int32_t *skip, bm_wide u, bm_wide out);

    /* b = x + y, q = a b / 2^scale, out = b u. */
    void (*backward_blank)(size_t n, bm_wide x, bm_wide y, bm_wide a,
                           int32_t scale, float um, int32_t ue, float *q,
                           bm_wide out);
    /* b[i] = x[i] + y[i] + z[i] 2^skip[i], and so on. */
    void (*backward_symbol)(size_t n, bm_wide x, bm_wide y, bm_wide z,
                            const int32_t *skip, bm_wide a, int32_t scale,
                            bm_wide u, float *q, bm_wide out);
} bm_loss_loops;

#define X(isa) extern const bm_loss_loops bm_loss_loops_##isa;
BM_ISAS(X)
#undef X

#endif
