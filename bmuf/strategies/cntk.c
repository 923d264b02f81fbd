/*
 * cntk.c - what CNTK's block momentum computes (BlockMomentumSGD.h), under its
 * names. Its sum over N workers weighs a block's change by N (1 - eta); and
 * where it says Nesterov, the model ahead takes the place of the model, which
 * is classical momentum with zeta (1 + eta).
 */
#include "bmuf/strategies/filtered.h"

#include <math.h>
#include <stddef.h>

typedef struct settings {
    double block_momentum;
    double block_learning_rate;
    bool nesterov;
} settings;

static const bm_option options[] = {
    {"block_momentum", BM_AUTO, offsetof(settings, block_momentum), "auto", 0,
     0.9999, NULL, "eta; auto: 1 - 1/N"},
    {"block_learning_rate", BM_FLOAT, offsetof(settings, block_learning_rate),
     "1", 0, 10, NULL,
     "zeta is this times N (1 - eta), and (1 + eta) with nesterov"},
    {"nesterov", BM_FLAG, offsetof(settings, nesterov), "yes", 0, 0, NULL,
     "useNesterovMomentum"},
    {0},
};

static bm_filter resolve(const void *of, int workers)
{
    const settings *set = of;
    double eta = isnan(set->block_momentum) ? bm_filter_momentum(workers)
                                            : set->block_momentum;
    double zeta = workers * (1 - eta) * set->block_learning_rate;

    return (bm_filter){.momentum = eta,
                       .rate = set->nesterov ? zeta * (1 + eta) : zeta};
}

const bm_strategy_ops bm_strategy_cntk = {
    .name = "cntk",
    .help = "block momentum as CNTK computes it: classical, also where it says "
            "Nesterov, as in its published results",
    .options = options,
    .settings_size = sizeof(settings),
    .filter = resolve,
    .worker_end = bm_filtered_count_alike,
    BM_FILTERED,
};
