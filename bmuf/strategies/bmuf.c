/* bmuf.c - blockwise model-update filtering as it is written: eta and zeta are
 * the settings. */
#include "bmuf/strategies/filtered.h"

#include <math.h>
#include <stddef.h>

const bm_option bm_filter_options[] = {
    {"momentum", BM_AUTO, offsetof(bm_filter, momentum), "auto", 0, 0.9999,
     NULL,
     "eta: share of the last block's update kept in the next; auto: 1 - 1/N"},
    {"rate", BM_FLOAT, offsetof(bm_filter, rate), "1", 0, 10, NULL,
     "zeta: weight of a block's own change"},
    {"nesterov", BM_FLAG, offsetof(bm_filter, nesterov), "yes", 0, 0, NULL,
     "start blocks from the anticipated model"},
    {"rescale", BM_FLAG, offsetof(bm_filter, rescale), "no", 0, 0, NULL,
     "when the learning rate changes, change Delta with it"},
    {0},
};

static bm_filter resolve(const void *settings, int workers)
{
    bm_filter f = *(const bm_filter *)settings;

    if (isnan(f.momentum))
        f.momentum = bm_filter_momentum(workers);
    return f;
}

const bm_strategy_ops bm_strategy_bmuf = {
    .name = "bmuf",
    .help = "blockwise model-update filtering (Chen & Huo 2016)",
    .options = bm_filter_options,
    .settings_size = sizeof(bm_filter),
    .filter = resolve,
    BM_FILTERED,
};
