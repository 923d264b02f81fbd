/*
 * slowmo.c - SlowMo (Wang et al. 2020): classical block momentum in units of
 * gradients, so that Delta goes with the learning rate.
 *
 *     u <- beta u + (start - mean w) / gamma      start <- start - alpha gamma
 * u
 */
#include "bmuf/strategies/filtered.h"

#include <stddef.h>

typedef struct settings {
    double slowmo_momentum;
    double slowmo_lr;
} settings;

static const bm_option options[] = {
    {"slowmo_momentum", BM_FLOAT, offsetof(settings, slowmo_momentum), "0.5", 0,
     0.9999, NULL, "beta"},
    {"slowmo_lr", BM_FLOAT, offsetof(settings, slowmo_lr), "1", 0, 10, NULL,
     "alpha"},
    {0},
};

static bm_filter resolve(const void *of, int workers)
{
    const settings *set = of;

    (void)workers;
    return (bm_filter){.momentum = set->slowmo_momentum,
                       .rate = set->slowmo_lr,
                       .rescale = true};
}

const bm_strategy_ops bm_strategy_slowmo = {
    .name = "slowmo",
    .help = "SlowMo (Wang et al. 2020): momentum over blocks, in units of "
            "gradients",
    .options = options,
    .settings_size = sizeof(settings),
    .filter = resolve,
    BM_FILTERED,
};
