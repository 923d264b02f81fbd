/*
 * ssgd.c - synchronous SGD: every update uses the mean gradient of all
 * mini-batches. With [job] coordinator = root it is the parameter server's
 * form, with sum = ring the ring's; with [ssgd] overlap buckets of a gradient
 * are exchanged while the backward pass makes the rest.
 */
#include "bmuf/exchange/bucketed.h"
#include "bmuf/strategy.h"

static const bm_option options[] = {
    {"overlap", BM_CHOICE, offsetof(bm_bucketed_settings, overlap), "none", 0,
     0, "none layer bucket merged",
     "what is exchanged during the backward pass: nothing; each layer; layers "
     "up to a size; layers merged where timings at the start say it is faster"},
    {"bucket", BM_FLOAT, offsetof(bm_bucketed_settings, bucket), "25", 0.001,
     1e6, "MiB", "overlap = bucket: the size; the first one has 1/25 of it"},
    {0},
};

static void resolve(const void *settings, const bm_run_point *at,
                    bm_traits *traits)
{
    (void)at;
    traits->owns_exchanges = bm_bucketed_wanted(settings);
}

/* s->self: the bucketed exchange; NULL: gradients are exchanged whole. */
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

static void begin(bm_strategy *s, int worker, const double *samples)
{
    (void)worker;
    if (s->self != NULL)
        bm_bucketed_begin(s->self, samples);
}

static bm_status worker_end(bm_strategy *s, int worker, double samples,
                            bool *good)
{
    bm_status status = BM_OK;

    if (s->self == NULL)
        return bm_exchange_add(s->exchange, worker, s->params->g, NULL, samples,
                               good);
    *good = true; /* a gradient that is not finite shows in the mean */
    status = bm_bucketed_end(s->self, worker, samples);
    s->used_s = bm_bucketed_used(s->self);
    return status;
}

static bm_status exchange(bm_strategy *s)
{
    if (s->self != NULL)
        return bm_bucketed_finish(s->self, &s->update.weight);
    return bm_strategy_take_mean(s);
}

const bm_strategy_ops bm_strategy_ssgd = {
    .name = "ssgd",
    .help = "synchronous SGD: gradients averaged at every step",
    .per = BM_STEP,
    .settings = {options, sizeof(bm_bucketed_settings), .resolve = resolve},
    .open = ssgd_open,
    .close = ssgd_close,
    .begin = begin,
    .worker_end = worker_end,
    .exchange = exchange,
};
