/*
 * softsync.c - n-softsync (Zhang, Gupta et al. 2016): the server waits for c =
 * floor(N / n) gradients and makes one update with their mean. Whoever has
 * pushed goes on with the model that its gradient is in, so that n = 1 is
 * synchronous SGD and n = N is asynchronous SGD. See server_policy.h.
 */
#include "bmuf/strategy.h"

#include <stddef.h>

typedef struct settings {
    long n;
    bm_scaling scaling;
} settings;

static const bm_option options[] = {
    {"n", BM_INT, offsetof(settings, n), "1", 1, 32768, NULL,
     "updates while all N workers push once: one with floor(N / n) gradients"},
    BM_SCALING_OPTIONS(settings, scaling),
    {0},
};

static void resolve(const void *of, int workers, bm_traits *traits)
{
    const settings *set = of;

    traits->server_policy = (bm_server_policy){
        .push = BM_GRADIENT,
        .group = set->n < workers ? workers / (int)set->n : 1,
        .push_every = 1,
        .fetch_every = 1,
        .power = bm_scaling_power(&set->scaling)};
}

static void check(const bm_config *config, bm_faults *faults)
{
    settings set = {0};
    bm_job job = {0};

    bm_config_peek(config, "softsync", options, &set);
    bm_config_peek(config, "job", bm_job_options, &job);
    if (set.n > job.workers)
        bm_config_fault(faults, config, "softsync", "n",
                        "softsync.n = %ld is more than job.workers = %ld; with "
                        "as many it is asgd",
                        set.n, job.workers);
    bm_scaling_check(&set.scaling, "softsync", config, faults);
}

const bm_strategy_ops bm_strategy_softsync = {
    .name = "softsync",
    .help = "n-softsync (Zhang et al. 2016): an update for every N / n pushes",
    .per = BM_EVENT,
    .settings = {options, sizeof(settings), check, .resolve = resolve},
};
