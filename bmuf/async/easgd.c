/*
 * easgd.c - elastic averaging SGD (Zhang, Choromanska and LeCun 2015): every
 * worker keeps a model of its own; an elastic force pulls it and the server's
 * model towards each other. With [sgd] momentum and nesterov = yes it is
 * EAMSGD. See server_policy.h.
 */
#include "bmuf/strategy.h"

#include <math.h>
#include <stddef.h>

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

static void resolve(const void *of, const bm_moment *at, bm_traits *traits)
{
    const settings *set = of;

    traits->server_policy = (bm_server_policy){
        .push = BM_ELASTIC,
        .group = 1,
        .push_every = set->period,
        .fetch_every = set->period,
        .alpha = isnan(set->alpha) ? 0.9 / at->workers : set->alpha};
}

const bm_strategy_ops bm_strategy_easgd = {
    .name = "easgd",
    .help = "elastic averaging SGD (Zhang et al. 2015)",
    .per = BM_EVENT,
    .settings = {options, sizeof(settings), .resolve = resolve},
};
