/* fairseq.c - what fairseq's BMUF computes (optim/bmuf.py), under its names.
 * Its use_nbm is classical momentum with zeta (1 + eta). Its workers keep what
 * their updates remember. */
#include "bmuf/strategies/filtered.h"

#include <stddef.h>

typedef struct settings {
    double block_momentum;
    double block_lr;
    bool use_nbm;
} settings;

static const bm_option options[] = {
    {"block_momentum", BM_FLOAT, offsetof(settings, block_momentum), "0.875", 0,
     0.9999, NULL, "eta"},
    {"block_lr", BM_FLOAT, offsetof(settings, block_lr), "1", 0, 10, NULL,
     "zeta, times (1 + eta) with use_nbm"},
    {"use_nbm", BM_FLAG, offsetof(settings, use_nbm), "no", 0, 0, NULL,
     "as there"},
    {0},
};

static const char *const usual[] = {"sgd.local_state=keep", NULL};

static bm_filter resolve(const void *of, int workers)
{
    const settings *set = of;
    double eta = set->block_momentum;

    (void)workers;
    return (bm_filter){.momentum = eta,
                       .rate = set->block_lr * (set->use_nbm ? 1 + eta : 1)};
}

const bm_strategy_ops bm_strategy_fairseq = {
    .name = "fairseq",
    .help = "block momentum as fairseq computes it",
    .options = options,
    .usual = usual,
    .settings_size = sizeof(settings),
    .filter = resolve,
    .worker_end = bm_filtered_count_alike,
    BM_FILTERED,
};
