#include "cli/report/regime.h"

#include <math.h>
#include <string.h>

/* The mean frames of a mini-batch. With batch.frames, a limit, it is the mean
 * over the first block. */
static bm_status batch_frames(const bm_settings *s, const bm_dataset *d,
                              const bm_plan *plan, double *out)
{
    double mean = (double)d->frames / (double)(d->n ? d->n : 1);
    bm_plan_settings sized = bm_plan_sized(&s->plan, d);
    bm_filling f = {0};

    if (sized.frames > 0 && bm_plan_blocks(plan) > 0)
        BM_TRY(bm_plan_fill(plan, 0, &f));
    if (f.frames > 0)
        *out = f.frames / f.batches;
    else
        *out = sized.frames > 0 ? (double)sized.frames
                                : (double)sized.sequences * mean;
    return BM_OK;
}

/* The fraction of an epoch in which workers of equal speed are busy. */
static double balance_of(const bm_plan *plan)
{
    int64_t n = bm_plan_blocks(plan);
    double sum = 0;

    for (int64_t b = 0; b < n; b++)
        sum += 1 / bm_plan_balance(plan, b);
    return n > 0 ? (double)n / sum : 0;
}

bm_status bm_first_plan(const bm_settings *s, const bm_dataset *data,
                        bm_plan **out)
{
    return bm_plan_new(out, data, &s->plan, (int)s->job.workers,
                       (uint64_t)s->job.seed, 0);
}

bm_status bm_count_blocks(const bm_settings *s, const bm_dataset *data,
                          long epochs, double *out)
{
    bm_series changes = bm_plan_changes(&s->plan);
    double sum = 0;

    for (int i = 0; i < changes.n; i++) {
        double from = changes.from[i];
        double to = i + 1 < changes.n ? changes.from[i + 1] : (double)epochs;
        bm_plan *plan = NULL;

        BM_TRY(bm_plan_new(&plan, data, &s->plan, (int)s->job.workers,
                           (uint64_t)s->job.seed, (int64_t)from));
        sum += (double)bm_plan_blocks(plan) *
               fmax(fmin(to, (double)epochs) - from, 0);
        bm_plan_free(plan);
    }
    *out = sum;
    return BM_OK;
}

bm_status bm_regime_of(const bm_settings *s, const bm_dataset *data,
                       const bm_plan *plan, bm_regime *out)
{
    const bm_strategy_ops *ops = bm_strategy_find(s->train.strategy);
    bool adam = bm_sgd_is_adam(&s->sgd);
    double batch = 0, blocks = fmax((double)bm_plan_blocks(plan), 1);
    long epochs = bm_settings_epochs(s, data);
    int n = (int)s->job.workers;
    bm_filter filter = {0};

    BM_TRY(batch_frames(s, data, plan, &batch));
    BM_TRY(bm_settings_filter(s, 0, (double)data->frames / blocks, &filter));
    *out = (bm_regime){
        .workers = bm_block_workers(&s->block, 0, n),
        .filtered = s->filtered,
        .renamed = ops != &bm_strategy_bmuf,
        .blocks = ops->per == BM_BLOCK,
        .in_parts = bm_fragments_wanted(&s->block),
        .some_workers = s->block.workers.value[0] > 0,
        .momentum = filter.momentum,
        .rate = filter.rate,
        .adam = adam,
        .diloco = ops == &bm_strategy_diloco,
        .local_momentum = adam ? s->sgd.beta1 : s->sgd.momentum,
        .accumulate = (double)s->plan.accumulate,
        .reset = bm_sgd_local_state(&s->sgd) == BM_LOCAL_RESET,
        .block_frames = (double)data->frames / blocks,
        .epoch_frames = (double)data->frames,
        .batch_frames = batch,
        .batch_in_sequences = s->plan.sequences > 0,
        .batch_statistics = strstr(s->model.net, "batchnorm") != NULL,
        .sequence_frames = (double)data->frames / fmax((double)data->n, 1),
        .block_by = s->block.frames_total.value[0] > 0 ? BM_BLOCK_BY_TOTAL
                    : s->block.steps.value[0] > 0      ? BM_BLOCK_BY_STEPS
                                                       : BM_BLOCK_BY_WORKER,
        .balance = balance_of(plan),
        .epochs = epochs,
        .warmup = s->schedule.warmup,
        /* a set without any labels is refused elsewhere */
        .unlabelled = data->labels > 0 ? data->unlabelled : 0};
    for (long e = 0; e < epochs; e++)
        out->passes += 1. / bm_block_workers(&s->block, e, n);
    return BM_OK;
}
