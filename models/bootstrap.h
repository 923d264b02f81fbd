/*
 * bootstrap.h - intervals of error rates, and of their differences between two
 * systems (Efron 1979; Bisani and Ney 2004).
 *
 * A rate is the sum of errors over the sum of labels of n sequences. Sequences
 * are drawn again, n of them with repetition, 10,000 times; the interval has
 * the middle 95 % of the rates. Two systems are compared on the same sequences:
 * each draw has the same ones for both.
 *
 * Draws are numbers of core/rng.h with a fixed seed: equal counts give equal
 * bits, on any machine and number of ranks.
 */
#ifndef BM_MODELS_BOOTSTRAP_H
#define BM_MODELS_BOOTSTRAP_H

#include "core/status.h"

#include <stddef.h>

/* Of a sequence. Any number may stand for errors: with total = 1 the rate is a
 * mean. */
typedef struct bm_error_count {
    double errors, total;
} bm_error_count;

typedef struct bm_interval {
    double rate;      /* of the counts as they are */
    double low, high; /* it is between these in 95 % of the draws */
    double below;     /* share of the draws with a rate below 0, and half of
                         those with 0: how probable it is that a difference is
                         one */
} bm_interval;

enum { BM_DRAWS = 10000, BM_DRAWN_GROUPS = 10000 };

/*
 * All of *out is NAN if the totals are 0, all but the rate if only one sequence
 * has labels or errors. More than BM_DRAWN_GROUPS sequences are drawn in that many
 * groups of neighbours, which bounds the time to about a second. Fails only with
 * BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_bootstrap(const bm_error_count *count, size_t n,
                                  bm_interval *out);

/* The rate of b minus the rate of a, which have the same totals: negative if b
 * is better, and `below` is the probability of that. Fails as bm_bootstrap. */
BM_CHECKED bm_status bm_bootstrap_difference(const bm_error_count *a,
                                             const bm_error_count *b, size_t n,
                                             bm_interval *out);

#endif
