/*
 * onebit.c - 1-bit SGD (Seide et al. 2014): synchronous SGD whose gradients
 * travel as one bit a weight, both ways, with error feedback on both.
 *
 *     worker k    y = g_k + A_k    y^ = one bit a weight    A_k <- y - y^
 *     owner       z = mean y^ + B  z^ = one bit a weight    B <- z - z^
 *     all         w <- local update(w, z^)
 */
#include "bmuf/strategy.h"

#include <stddef.h>
#include <string.h>

typedef struct settings {
    const char *bits;
} settings;

static const bm_option options[] = {
    {"bits", BM_CHOICE, offsetof(settings, bits), "1", 0, 0, "1 32",
     "bits of a weight's gradient that are sent; 32: all, which is ssgd"},
    {0},
};

static void resolve(const void *of, const bm_run_point *at, bm_traits *traits)
{
    const settings *set = of;

    (void)at;
    traits->code =
        bm_code_find(strcmp(set->bits, "1") == 0 ? "onebit" : "fp32", 0);
}

const bm_strategy_ops bm_strategy_onebit = {
    .name = "onebit",
    .help = "1-bit SGD (Seide et al. 2014): gradients of one bit a weight at "
            "every step",
    .per = BM_STEP,
    .settings = {options, sizeof(settings), .resolve = resolve},
};
