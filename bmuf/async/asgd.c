/*
 * asgd.c - asynchronous SGD through a parameter server: every push is an update
 * at once. With periods it is Downpour SGD (Dean et al. 2012); update = local
 * is what CNTK does, where the server adds up what workers have changed. See
 * server_policy.h.
 */
#include "bmuf/strategy.h"

#include <stddef.h>
#include <string.h>

typedef struct settings {
    long push_every, fetch_every;
    const char *update;
    bm_scaling scaling;
} settings;

static const bm_option options[] = {
    {"push_every", BM_INT, offsetof(settings, push_every), "1", 1, 1e6,
     "mini-batches", "of a worker in one push to the server"},
    {"fetch_every", BM_INT, offsetof(settings, fetch_every), "1", 1, 1e6,
     "mini-batches",
     "of a worker with one fetch of the server's model; a multiple of "
     "push_every"},
    {"update", BM_CHOICE, offsetof(settings, update), "server", 0, 0,
     "server local",
     "where [sgd]'s update is made, and its momentum is: on the server with "
     "gradients that are pushed, or by each worker, which pushes the change"},
    BM_SCALING_OPTIONS(settings, scaling),
    {0},
};

static void resolve(const void *of, int workers, bm_traits *traits)
{
    const settings *set = of;
    bool local = strcmp(set->update, "local") == 0;

    (void)workers;
    traits->server_policy =
        (bm_server_policy){.push = local ? BM_CHANGE : BM_GRADIENT,
                           .group = 1,
                           .push_every = set->push_every,
                           .fetch_every = set->fetch_every,
                           .power = bm_scaling_power(&set->scaling)};
}

static void check(const bm_config *config, bm_faults *faults)
{
    settings set = {0};

    bm_config_peek(config, "asgd", options, &set);
    if (set.fetch_every % set.push_every != 0)
        bm_config_fault(faults, config, "asgd", "fetch_every",
                        "asgd.fetch_every = %ld is no multiple of "
                        "asgd.push_every = %ld: what a worker has learned and "
                        "not pushed would be lost",
                        set.fetch_every, set.push_every);
    bm_scaling_check(&set.scaling, "asgd", config, faults);
}

const bm_strategy_ops bm_strategy_asgd = {
    .name = "asgd",
    .help = "asynchronous SGD, Downpour (Dean et al. 2012)",
    .per = BM_EVENT,
    .settings = {options, sizeof(settings), check, .resolve = resolve},
};
