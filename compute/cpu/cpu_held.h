/*
 * cpu_held.h - other forms of matrices that bm_hold promises not to change:
 * packed for products, as floats or as bytes, once instead of in every pass.
 */
#ifndef BM_COMPUTE_CPU_CPU_HELD_H
#define BM_COMPUTE_CPU_CPU_HELD_H

#include "compute/cpu/loops/cpu_isa.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct bm_held_form bm_held_form;

/* Starts as {0}; bm_held_clear frees what it holds. */
typedef struct bm_held {
    const float *x; /* [n]; borrowed; NULL: nothing is held */
    size_t n;
    bool bytes; /* products of B in bytes */
    bm_held_form *forms;
    size_t n_forms;
} bm_held;

void bm_held_clear(bm_held *h);

/* The transpose of b [n, k], packed by product->pack or, with `bytes`, by
 * bytes->pack; borrowed until bm_held_clear. NULL: b is not held, or there is
 * no memory for it. */
const void *bm_held_packed(bm_held *h, const bm_isa *isa, bool bytes, size_t k,
                           size_t n, const float *b);

#endif
