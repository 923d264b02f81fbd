/*
 * diloco.c - the outer optimizer of DiLoCo (Douillard et al. 2023): SGD with
 * Nesterov momentum on what the workers changed, which is the filter. The inner
 * one is AdamW, whose moments the workers keep. Who sets [sgd] otherwise has
 * another method, and is warned.
 */
#include "bmuf/strategies/filtered.h"

#include <stddef.h>

typedef struct settings {
    double outer_momentum;
    double outer_lr;
} settings;

static const bm_option options[] = {
    {"outer_momentum", BM_FLOAT, offsetof(settings, outer_momentum), "0.9", 0,
     0.9999, NULL, "eta"},
    {"outer_lr", BM_FLOAT, offsetof(settings, outer_lr), "0.7", 0, 10, NULL,
     "zeta"},
    {0},
};

static const char *const usual[] = {"sgd.update=adamw", "sgd.local_state=keep",
                                    NULL};

static bm_filter resolve(const void *of, int workers)
{
    const settings *set = of;

    (void)workers;
    return (bm_filter){.momentum = set->outer_momentum,
                       .rate = set->outer_lr,
                       .nesterov = true};
}

const bm_strategy_ops bm_strategy_diloco = {
    .name = "diloco",
    .help = "DiLoCo (Douillard et al. 2023): Nesterov momentum over blocks, "
            "AdamW in them",
    .options = options,
    .usual = usual,
    .settings_size = sizeof(settings),
    .filter = resolve,
    BM_FILTERED,
};
