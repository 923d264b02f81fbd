/* lookahead.c - Lookahead (Zhang et al. 2019): slow weights follow fast ones
 * part of the way at the end of every block. */
#include "bmuf/strategies/filtered.h"

#include <stddef.h>

typedef struct settings {
    double alpha;
} settings;

static const bm_option options[] = {
    {"alpha", BM_FLOAT, offsetof(settings, alpha), "0.5", 0, 10, NULL,
     "part of the way"},
    {0},
};

static bm_filter resolve(const void *of, int workers)
{
    const settings *set = of;

    (void)workers;
    return (bm_filter){.rate = set->alpha};
}

const bm_strategy_ops bm_strategy_lookahead = {
    .name = "lookahead",
    .help =
        "Lookahead (Zhang et al. 2019): part of the way to where the block led",
    .options = options,
    .settings_size = sizeof(settings),
    .filter = resolve,
    BM_FILTERED,
};
