/*
 * easgd.c - elastic averaging SGD (Zhang, Choromanska and LeCun 2015): every
 * worker keeps a model of its own; an elastic force pulls it and the server's
 * model towards each other. With [sgd] momentum and nesterov = yes it is
 * EAMSGD. See server_policy.h.
 */
#include "bmuf/block_settings.h"
#include "bmuf/strategy.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

typedef struct settings {
    long period;
    double alpha;
} settings;

static const bm_option options[] = {
    {"period", BM_INT, offsetof(settings, period), "4", 1, 1e6, "mini-batches",
     "interval between two exchanges of a worker with the server, tau"},
    {"alpha", BM_AUTO, offsetof(settings, alpha), "auto", 0, 1, NULL,
     "fraction of their distance by which both models move; auto: 0.9 / N"},
    {0},
};

static void resolve(const void *of, const bm_run_point *at, bm_traits *traits)
{
    const settings *set = of;

    traits->server_policy = (bm_server_policy){
        .push = BM_ELASTIC,
        .group = 1,
        .push_every = set->period,
        .fetch_every = set->period,
        .alpha = isnan(set->alpha) ? 0.9 / at->workers : set->alpha};
}

/* A worker that waits keeps the model that it has. */
static void check(const bm_config *config, bm_faults *faults)
{
    const char *strategy = bm_config_text(config, "train", "strategy");
    bm_block_settings block = {0};

    bm_config_peek(config, "block", bm_block_options, &block);
    if (strategy != NULL && strcmp(strategy, "easgd") == 0 &&
        block.workers.value[0] > 0)
        bm_config_fault(faults, config, "block", "workers",
                        "block.workers is not for train.strategy = easgd: a "
                        "worker that begins late would pull the server's model "
                        "to the first weights; leave it out, or set "
                        "train.strategy = asgd");
}

const bm_strategy_ops bm_strategy_easgd = {
    .name = "easgd",
    .help = "elastic averaging SGD (Zhang et al. 2015)",
    .per = BM_EVENT,
    .settings = {options, sizeof(settings), check, .resolve = resolve},
};
