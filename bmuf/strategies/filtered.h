/*
 * filtered.h - what all strategies do that filter block updates, see filter.h:
 * each rank keeps W and Delta of its slice, and filters that. They differ in
 * what their settings make of eta and zeta.
 *
 * To add one: a file with its settings, a function that resolves them, and
 *
 *     const bm_strategy_ops bm_strategy_mine = {
 *         .name = "mine", .help = "...", .options = options,
 *         .settings_size = sizeof(settings),
 *         .filter = resolve,
 *         BM_FILTERED,
 *     };
 */
#ifndef BM_BMUF_STRATEGIES_FILTERED_H
#define BM_BMUF_STRATEGIES_FILTERED_H

#include "bmuf/strategy.h"

bm_status bm_filtered_open(bm_strategy *s);
void bm_filtered_close(bm_strategy *s);
bm_status bm_filtered_exchange(bm_strategy *s);
bm_status bm_filtered_global(bm_strategy *s, float *x);
size_t bm_filtered_state(bm_strategy *s, bm_state *out);
bm_status bm_filtered_resume(bm_strategy *s);

#define BM_FILTERED                                                            \
    .unit = BM_BLOCK, .codes = true, .open = bm_filtered_open,                 \
    .close = bm_filtered_close, .exchange = bm_filtered_exchange,              \
    .global = bm_filtered_global, .state = bm_filtered_state,                  \
    .resume = bm_filtered_resume

/* For worker_end: the mean is that of the workers with data, whatever they had.
 */
bm_status bm_filtered_count_alike(bm_strategy *s, int worker, double samples,
                                  bool *good);

#endif
