/*
 * filter_loops.h - the filter's arithmetic, compiled once for each instruction
 * set (core/isa.h). All of them give the same bits.
 */
#ifndef BM_BMUF_FILTER_LOOPS_H
#define BM_BMUF_FILTER_LOOPS_H

#include "core/isa.h"

#include <stdbool.h>

typedef struct bm_filter_loops {
    /* bm_filter_block, see filter.h. ahead: eta with Nesterov, else 0. */
    void (*block)(size_t n, double eta, double zeta, double ahead,
                  const float *g, float *model, float *delta, float *start);
    /* sum += {a a, a b, b b}, in an order that depends on n alone. */
    void (*products)(size_t n, const float *a, const float *b, double sum[3]);
    /* y = a - b. True if all of y is finite. */
    bool (*subtract)(size_t n, const float *a, const float *b, float *y);
} bm_filter_loops;

/* The loops for this machine, or for BMUF_ISA; baseline if that is invalid. */
const bm_filter_loops *bm_filter_loops_here(void);

#define X(isa) extern const bm_filter_loops bm_filter_loops_##isa;
BM_ISAS(X)
#undef X

#endif
