/*
 * ssgd.c - synchronous SGD: every update uses the mean gradient of all
 * mini-batches. With [job] coordinator = root it is the parameter server's
 * form, with sum = ring the ring's; with [ssgd] overlap gradients travel while
 * the rest of them is made.
 */
#include "bmuf/exchange/bucketed.h"
#include "bmuf/strategy.h"

#include <string.h>

static const bm_option options[] = {
    {"overlap", BM_CHOICE, offsetof(bm_bucketed_settings, overlap), "none", 0,
     0, "none layer bucket merged",
     "what is exchanged during the backward pass: nothing; each layer; layers "
     "up to a size; those that had better go together, as exchanges and layers "
     "are timed at the start"},
    {"bucket", BM_FLOAT, offsetof(bm_bucketed_settings, bucket), "25", 0.001,
     1e6, "MiB", "overlap = bucket: the size; the first one has 1/25 of it"},
    {0},
};

static void check(const bm_config *config, bm_faults *faults)
{
    bm_bucketed_settings set = {0};

    bm_config_peek(config, "ssgd", options, &set);
    if (bm_config_changed(config, "ssgd", options, "bucket") &&
        strcmp(set.overlap, "bucket") != 0)
        bm_config_fault(faults, config, "ssgd", "bucket",
                        "ssgd.bucket = %g is for ssgd.overlap = bucket alone",
                        set.bucket);
}

static bool by_itself(const void *settings)
{
    return bm_bucketed_wanted(settings);
}

static bm_status ssgd_open(bm_strategy *s)
{
    bm_bucketed *o = NULL;

    if (s->exchange != NULL)
        return BM_OK;
    BM_TRY(bm_bucketed_open(&o, s->comm, s->params, &s->job, s->settings));
    s->self = o;
    return BM_OK;
}

static void ssgd_close(bm_strategy *s)
{
    bm_bucketed_close(s->self);
}

static void worker_begin(bm_strategy *s, const double *samples)
{
    if (s->self != NULL)
        bm_bucketed_begin(s->self, samples);
}

static bm_status worker_end(bm_strategy *s, int worker, double samples,
                            bool *good)
{
    if (s->self == NULL)
        return bm_exchange_add(s->exchange, worker, s->params->g, NULL, samples,
                               good);
    s->used_s = bm_bucketed_used(s->self);
    *good = true; /* if it is not, the mean is not either */
    return bm_bucketed_end(s->self, worker, samples);
}

static bm_status exchange(bm_strategy *s)
{
    if (s->self != NULL)
        return bm_bucketed_finish(s->self, &s->update.weight);
    return bm_take_mean(s);
}

const bm_strategy_ops bm_strategy_ssgd = {
    .name = "ssgd",
    .help = "synchronous SGD: gradients averaged at every step",
    .unit = BM_STEP,
    .options = options,
    .settings_size = sizeof(bm_bucketed_settings),
    .check = check,
    .by_itself = by_itself,
    .open = ssgd_open,
    .close = ssgd_close,
    .worker_begin = worker_begin,
    .worker_end = worker_end,
    .exchange = exchange,
};
