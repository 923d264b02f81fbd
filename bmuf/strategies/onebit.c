/*
 * onebit.c - 1-bit SGD (Seide et al. 2014): synchronous SGD whose gradients
 * travel as one bit a weight, both ways, with error feedback on both.
 *
 *     worker k    y = g_k + A_k    y^ = one bit a weight    A_k <- y - y^
 *     owner       z = mean y^ + B  z^ = one bit a weight    B <- z - z^
 *     all         w <- local update(w, z^)
 */
#include "bmuf/strategy.h"

static void resolve(const void *settings, const bm_run_point *at,
                    bm_traits *traits)
{
    (void)settings;
    (void)at;
    traits->code = bm_code_find("onebit", 0);
}

const bm_strategy_ops bm_strategy_onebit = {
    .name = "onebit",
    .help = "1-bit SGD (Seide et al. 2014): gradients of one bit a weight at "
            "every step",
    .per = BM_STEP,
    .settings = {.resolve = resolve},
};
