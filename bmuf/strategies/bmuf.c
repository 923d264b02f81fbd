/* bmuf.c - blockwise model-update filtering as Chen and Huo (2016) write it:
 * eta and zeta are the settings. */
#include "bmuf/strategies/filtered.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

typedef struct settings {
    bm_series momentum, rate;
    double time_constant; /* frames; 0: momentum is set */
    bool nesterov;
} settings;

static const bm_option options[] = {
    {"momentum", BM_SERIES, offsetof(settings, momentum), "auto", 0, 0.9999,
     NULL,
     "eta: fraction of the last block's update kept in the next; auto: 1 - "
     "1/N, but at most 0.9"},
    {"rate", BM_SERIES, offsetof(settings, rate), "1", 0, 10, NULL,
     "zeta: weight of a block's own change"},
    {"time_constant", BM_FLOAT, offsetof(settings, time_constant), "0", 0, 1e18,
     "frames",
     "frames of all workers after which an update counts 1/e, in place of "
     "momentum: eta = exp(-block / time_constant); 0: momentum decides"},
    {"nesterov", BM_FLAG, offsetof(settings, nesterov), "yes", 0, 0, NULL,
     "start blocks from the anticipated model"},
    {0},
};

static double momentum_at(const settings *set, const bm_run_point *at)
{
    double eta = bm_series_at(&set->momentum, at->epochs);

    if (set->time_constant > 0)
        return at->block_frames > 0
                   ? exp(-at->block_frames / set->time_constant)
                   : 0;
    return isnan(eta) ? bm_filter_momentum_of_many(at->workers) : eta;
}

static void resolve(const void *of, const bm_run_point *at, bm_traits *traits)
{
    const settings *set = of;

    traits->filtered = true;
    traits->filter = (bm_filter){.momentum = momentum_at(set, at),
                                 .rate = bm_series_at(&set->rate, at->epochs),
                                 .nesterov = set->nesterov};
}

static void check(const bm_config *config, bm_faults *faults)
{
    const char *momentum = bm_config_text(config, "bmuf", "momentum");
    settings set = {0};

    bm_config_peek(config, "bmuf", options, &set);
    if (set.time_constant > 0 && momentum != NULL &&
        strcmp(momentum, "auto") != 0)
        bm_config_fault(faults, config, "bmuf", "time_constant",
                        "bmuf.momentum = %s and bmuf.time_constant = %g: both "
                        "set eta; leave one of them out",
                        momentum, set.time_constant);
}

const bm_strategy_ops bm_strategy_bmuf = {
    .name = "bmuf",
    .help = "blockwise model-update filtering (Chen & Huo 2016)",
    .settings = {options, sizeof(settings), check, .one_momentum = true,
                 .rate = "rate", .resolve = resolve},
    BM_FILTERED,
};
