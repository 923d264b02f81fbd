/* bmuf.c - blockwise model-update filtering as Chen and Huo (2016) write it:
 * eta and zeta are the settings. */
#include "bmuf/strategies/filtered.h"

#include <math.h>
#include <stddef.h>

const bm_option bm_filter_options[] = {
    {"momentum", BM_AUTO, offsetof(bm_filter, momentum), "auto", 0, 0.9999,
     NULL,
     "eta: fraction of the last block's update kept in the next; auto: 1 - "
     "1/N"},
    {"rate", BM_FLOAT, offsetof(bm_filter, rate), "1", 0, 10, NULL,
     "zeta: weight of a block's own change"},
    {"nesterov", BM_FLAG, offsetof(bm_filter, nesterov), "yes", 0, 0, NULL,
     "start blocks from the anticipated model"},
    {"rescale", BM_FLAG, offsetof(bm_filter, rescale), "no", 0, 0, NULL,
     "when the learning rate changes, change Delta with it"},
    {0},
};

static void resolve(const void *settings, int workers, bm_traits *traits)
{
    traits->filtered = true;
    traits->filter = *(const bm_filter *)settings;
    if (isnan(traits->filter.momentum))
        traits->filter.momentum = bm_filter_momentum(workers);
}

const bm_strategy_ops bm_strategy_bmuf = {
    .name = "bmuf",
    .help = "blockwise model-update filtering (Chen & Huo 2016)",
    .settings = {bm_filter_options, sizeof(bm_filter), .resolve = resolve},
    BM_FILTERED,
};
