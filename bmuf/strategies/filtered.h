/*
 * filtered.h - the hooks of all strategies that filter block updates, see
 * filter.h: each rank keeps W and Delta of its slice and filters that. The
 * strategies differ in the eta and zeta that their settings resolve to.
 *
 * To add one: a file, or for a method that is known under another name a few
 * lines of variants.c, with its settings, a function that resolves them, and
 *
 *     const bm_strategy_ops bm_strategy_mine = {
 *         .name = "mine",
 *         .help = "...",
 *         .settings = {options, sizeof(settings), .rate = "rate",
 *                      .resolve = resolve},
 *         BM_FILTERED,
 *     };
 *
 * These hooks own s->self: a strategy with state of its own cannot use them.
 */
#ifndef BM_BMUF_STRATEGIES_FILTERED_H
#define BM_BMUF_STRATEGIES_FILTERED_H

#include "bmuf/strategy.h"

/* See the hooks of bm_strategy_ops. States: "model" and "delta", of a slice. */
bm_status bm_filtered_open(bm_strategy *s);
void bm_filtered_close(bm_strategy *s);
bm_status bm_filtered_exchange(bm_strategy *s);
size_t bm_filtered_state(bm_strategy *s, bm_state *out);
bm_status bm_filtered_start(bm_strategy *s, const bm_filter *previous);

#define BM_FILTERED                                                            \
    .per = BM_BLOCK, .open = bm_filtered_open, .close = bm_filtered_close,     \
    .exchange = bm_filtered_exchange, .state = bm_filtered_state,              \
    .start = bm_filtered_start

#endif
