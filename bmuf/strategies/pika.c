/* pika.c - what PIKA's BmufTrainer computes (trainer/bmuf.py), under its names.
 */
#include "bmuf/strategies/filtered.h"

#include <stddef.h>

typedef struct settings {
    double block_momentum;
    double block_lr;
} settings;

static const bm_option options[] = {
    {"block_momentum", BM_FLOAT, offsetof(settings, block_momentum), "0.9", 0,
     0.9999, NULL, "eta"},
    {"block_lr", BM_FLOAT, offsetof(settings, block_lr), "1", 0, 10, NULL,
     "zeta is this times (1 - eta) (1 + eta)"},
    {0},
};

static bm_filter resolve(const void *of, int workers)
{
    const settings *set = of;
    double eta = set->block_momentum;

    (void)workers;
    return (bm_filter){.momentum = eta,
                       .rate = set->block_lr * (1 - eta) * (1 + eta)};
}

const bm_strategy_ops bm_strategy_pika = {
    .name = "pika",
    .help = "block momentum as PIKA computes it",
    .options = options,
    .settings_size = sizeof(settings),
    .filter = resolve,
    .worker_end = bm_filtered_count_alike,
    BM_FILTERED,
};
