/*
 * lengths.h - data sets that exist as lengths alone, and plans for them.
 */
#ifndef BM_TESTS_SUPPORT_LENGTHS_H
#define BM_TESTS_SUPPORT_LENGTHS_H

#include "core/rng.h"
#include "io/batch/plan.h"

/* A data set of n_units units; unit u has counts[u] sequences. */
bm_dataset lengths_make(size_t n_units, const int32_t *counts,
                        int32_t (*length)(void *, int64_t), void *context);
/* Up to `most` sequences a unit: many short ones, few long ones, some empty. */
bm_dataset lengths_random(bm_rng *rng, size_t n_units, int32_t most);
void lengths_drop(bm_dataset *d);

/* For lengths_make: *context is the length of all. */
int32_t lengths_same(void *context, int64_t i);

bm_plan *plan_of(const bm_dataset *d, const bm_plan_settings *s, int workers,
                 uint64_t seed, int64_t epoch);

/* Added up from the units. */
int64_t share_frames(const bm_plan *p, const bm_dataset *d, int64_t block,
                     int worker);
int64_t block_frames(const bm_plan *p, const bm_dataset *d, int64_t block,
                     int workers);

#endif
