/*
 * asgd.c - asgd and softsync: SGD with a parameter server, see server_policy.h.
 *
 * asgd: every push is an update of its own. With periods it is Downpour SGD
 * (Dean et al. 2012); update = local is CNTK's variant, where the server adds
 * up the changes of workers' models.
 *
 * softsync: n-softsync (Zhang, Gupta et al. 2016): the server waits for c =
 * floor(N / n) gradients and makes one update with their mean. A worker that
 * has pushed waits for the update that contains its gradient, so that n = 1 is
 * synchronous SGD and n = N is asynchronous SGD.
 */
#include "bmuf/strategy.h"

#include <stddef.h>
#include <string.h>

typedef struct settings {
    long push_every, fetch_every; /* asgd */
    const char *update;           /* asgd */
    long n;                       /* softsync */
    const char *scaling;
} settings;

#define SCALING                                                                \
    {                                                                          \
        "scaling", BM_CHOICE, offsetof(settings, scaling), "none", 0, 0,       \
            "none inverse", "factor of a push of staleness tau: 1, or 1 / tau" \
    }

static bool is_scaled(const settings *set)
{
    return strcmp(set->scaling, "inverse") == 0;
}

/* ---- asgd ---------------------------------------------------------------- */

static const bm_option asgd_options[] = {
    {"push_every", BM_INT, offsetof(settings, push_every), "1", 1, 1e6,
     "mini-batches", "length of a worker's period, which ends with a push"},
    {"fetch_every", BM_INT, offsetof(settings, fetch_every), "1", 1, 1e6,
     "mini-batches",
     "interval between two fetches of the server's model; a multiple of "
     "push_every"},
    {"update", BM_CHOICE, offsetof(settings, update), "server", 0, 0,
     "server local",
     "where [sgd]'s update is made and its state is kept; server: workers push "
     "gradients; local: workers push the changes of their models"},
    SCALING,
    {0},
};

static void resolve_asgd(const void *of, const bm_run_point *at,
                         bm_traits *traits)
{
    const settings *set = of;
    bool local = strcmp(set->update, "local") == 0;

    (void)at;
    traits->server_policy =
        (bm_server_policy){.push = local ? BM_CHANGE : BM_GRADIENT,
                           .group = 1,
                           .push_every = set->push_every,
                           .fetch_every = set->fetch_every,
                           .scaled = is_scaled(set)};
}

static void check_asgd(const bm_config *config, bm_faults *faults)
{
    settings set = {0};

    bm_config_peek(config, "asgd", asgd_options, &set);
    if (set.fetch_every % set.push_every != 0)
        bm_config_fault(faults, config, "asgd", "fetch_every",
                        "asgd.fetch_every = %ld is not a multiple of "
                        "asgd.push_every = %ld: a fetch would discard updates "
                        "that the worker has not pushed",
                        set.fetch_every, set.push_every);
}

const bm_strategy_ops bm_strategy_asgd = {
    .name = "asgd",
    .help = "asynchronous SGD, Downpour (Dean et al. 2012)",
    .per = BM_EVENT,
    .settings = {asgd_options, sizeof(settings), check_asgd,
                 .resolve = resolve_asgd},
};

/* ---- softsync ------------------------------------------------------------ */

static const bm_option softsync_options[] = {
    {"n", BM_INT, offsetof(settings, n), "1", 1, 32768, NULL,
     "updates while each of the N workers pushes once; each update merges "
     "floor(N / n) gradients"},
    SCALING,
    {0},
};

static void resolve_softsync(const void *of, const bm_run_point *at,
                             bm_traits *traits)
{
    const settings *set = of;

    traits->server_policy = (bm_server_policy){
        .push = BM_GRADIENT,
        .group = set->n < at->workers ? at->workers / (int)set->n : 1,
        .push_every = 1,
        .fetch_every = 1,
        .scaled = is_scaled(set)};
}

static void check_softsync(const bm_config *config, bm_faults *faults)
{
    settings set = {0};
    bm_job job = {0};

    bm_config_peek(config, "softsync", softsync_options, &set);
    bm_config_peek(config, "job", bm_job_options, &job);
    if (set.n > job.workers)
        bm_config_fault(faults, config, "softsync", "n",
                        "softsync.n = %ld is more than job.workers = %ld; for "
                        "one push in each update use train.strategy = asgd",
                        set.n, job.workers);
}

const bm_strategy_ops bm_strategy_softsync = {
    .name = "softsync",
    .help = "n-softsync (Zhang et al. 2016): an update for every N / n pushes",
    .per = BM_EVENT,
    .settings = {softsync_options, sizeof(settings), check_softsync,
                 .resolve = resolve_softsync},
};
