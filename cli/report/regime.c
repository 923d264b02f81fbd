#include "cli/report/regime.h"

#include "cli/conditions.h"
#include "core/text/words.h"
#include "sgd/update.h"

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

void bm_each_change(const bm_config *config,
                    void (*see)(void *self, const char *name, const char *text,
                                const bm_series *x),
                    void *self)
{
    for (const bm_section *s = bm_train_sections(); s->name != NULL; s++)
        for (const bm_option *o = s->options; o->key != NULL; o++) {
            const char *text = bm_config_text(config, s->name, o->key);
            char name[80];
            bm_series x;

            if (o->type != BM_SERIES || text == NULL ||
                !bm_series_read(text, true, &x) || !bm_series_changes(&x) ||
                !bm_condition_holds(config, s->name, o->key))
                continue;
            snprintf(name, sizeof name, "%s.%s", s->name, o->key);
            see(self, name, text, &x);
        }
}

static double momentum_with(const bm_regime *r, int workers,
                            double block_frames)
{
    bm_filter filter = {0};
    bm_status status = bm_settings_filter(r->settings, workers, r->from,
                                          block_frames, &filter);

    return status == BM_OK ? filter.momentum : r->momentum;
}

/* Of the epoch that has this plan and begins after `from` epochs, or that part of
 * it. */
static bm_status regime_of(const bm_settings *s, const bm_dataset *data,
                           const bm_plan *plan, double from, bm_regime *out)
{
    const bm_strategy_ops *ops = bm_strategy_find(s->train.strategy);
    bool adam = bm_update_of(&s->sgd) == &bm_update_adamw;
    double batch = 0, blocks = fmax((double)bm_plan_blocks(plan), 1);
    long epochs = bm_settings_epochs(s, data);
    int n = (int)s->job.workers;
    int workers = bm_block_workers(&s->block, (int64_t)from, n);
    bm_filter filter = {0};

    BM_TRY(batch_frames(s, data, plan, &batch));
    BM_TRY(bm_settings_filter(s, workers, from, (double)data->frames / blocks,
                              &filter));
    *out = (bm_regime){
        .from = from,
        .workers = workers,
        .filtered = s->filtered,
        .renamed = ops != &bm_strategy_bmuf,
        .blocks = ops->per == BM_BLOCK,
        .in_parts = bm_fragments_wanted(&s->block),
        .some_workers = s->block.workers.value[0] > 0,
        .workers_change = bm_series_changes(&s->block.workers),
        .momentum = filter.momentum,
        .momentum_with = momentum_with,
        .settings = s,
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
        .warmup = from < s->schedule.warmup ? s->schedule.warmup : 0,
        /* a set without any labels is refused elsewhere */
        .unlabelled = data->labels > 0 ? data->unlabelled : 0};
    for (long e = 0; e < epochs; e++)
        out->passes += 1. / bm_block_workers(&s->block, e, n);
    return BM_OK;
}

/* If there are more changes than a series can have, those of the last settings are
 * left out. */
static void join(void *self, const char *name, const char *text,
                 const bm_series *x)
{
    bm_series *all = self, joined;

    (void)name;
    (void)text;
    if (bm_series_join(all, x, &joined))
        *all = joined;
}

static bm_status part_of(const bm_settings *s, const bm_dataset *data,
                         double from, bm_regime *out)
{
    bm_plan *plan = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_plan_new(&plan, data, &s->plan, (int)s->job.workers,
                       (uint64_t)s->job.seed, (int64_t)from));
    status = regime_of(s, data, plan, from, out);
    bm_plan_free(plan);
    return status;
}

bm_status bm_parts_of(const bm_settings *s, const bm_dataset *data,
                      bm_parts *out)
{
    bm_series changes = {.n = 1};
    double epochs = (double)bm_settings_epochs(s, data);

    bm_each_change(s->config, join, &changes);
    out->n = 0;
    for (int i = 0; i < changes.n; i++) {
        double from = changes.from[i];
        double to = i + 1 < changes.n ? changes.from[i + 1] : epochs;
        bm_regime *part = &out->part[out->n];

        if (i > 0 && from >= epochs)
            break;
        BM_TRY(part_of(s, data, from, part));
        part->lasts = fmin(to, epochs) - from;
        out->n++;
    }
    return BM_OK;
}

typedef struct end {
    double epochs;
    void (*warn)(void *self, const char *text);
    void *self;
} end;

static void check_end(void *self, const char *name, const char *text,
                      const bm_series *x)
{
    const end *e = self;
    char message[400];

    if (x->from[x->n - 1] < e->epochs)
        return;
    snprintf(message, sizeof message,
             "%s = %s: training ends after %s, before epoch %g, where its last "
             "value begins; epochs are counted from 0",
             name, text, bm_count_noun((long long)e->epochs, "epoch").text,
             x->from[x->n - 1]);
    e->warn(e->self, message);
}

void bm_advise_on_changes(const bm_settings *s, const bm_parts *parts,
                          void (*warn)(void *self, const char *text),
                          void *self)
{
    end e = {(double)parts->part->epochs, warn, self};
    int most = bm_most_workers(parts->part, parts->n)->workers;
    char message[400];

    bm_each_change(s->config, check_end, &e);
    if (!parts->part->workers_change || most >= s->job.workers)
        return;
    snprintf(message, sizeof message,
             "block.workers = %s: of %ld workers %ld never train; let it rise "
             "to %ld, or set job.workers = %d",
             bm_config_text(s->config, "block", "workers"), s->job.workers,
             s->job.workers - most, s->job.workers, most);
    warn(self, message);
}
