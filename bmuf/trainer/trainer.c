/* trainer.c - open, close and the state of a trainer. Its blocks are in
 * train_block.c, its two phases in warmup.c. */
#include "bmuf/trainer/trainer_parts.h"

#include "bmuf/async/clock_settings.h"
#include "bmuf/async/realtime.h"
#include "bmuf/compress_check.h"
#include "bmuf/strategies/fragments.h"
#include "bmuf/trainer/same_model.h"
#include "comm/agreed_alloc.h"
#include "core/text/words.h"

#include <math.h>
#include <stdlib.h>

const bm_option bm_train_options[] = {
    {"strategy", BM_CHOICE, offsetof(bm_train_settings, strategy), "bmuf", 0, 0,
     BM_STRATEGIES(BM_WORD), "how workers combine what they learn"},
    {"epochs", BM_INT, offsetof(bm_train_settings, epochs), "0", 0, 1e6, NULL,
     "passes over the data; 0: 30, and up to 100 for a set so small that 30 "
     "have fewer than 3000 mini-batches"},
    {"rate", BM_FLOAT, offsetof(bm_train_settings, rate), "0.02", 0, 1e3, NULL,
     "learning rate of local updates, at the start; if it is not set, 0.001 "
     "with sgd.update = adamw or rmsprop, 0.1 with sgd.momentum = 0"},
    {"diverged", BM_FLOAT, offsetof(bm_train_settings, diverged), "0.5", 0, 1e9,
     NULL,
     "leave out workers whose loss has risen, since the block before, by more "
     "than this fraction of the loss of equal logits; 0: never"},
    {"checkpoint_every", BM_INT, offsetof(bm_train_settings, checkpoint_every),
     "10", 0, 1e9, "blocks", "how often to save all state; 0: at the end only"},
    {"keep", BM_INT, offsetof(bm_train_settings, keep), "3", 1, 1e6,
     "checkpoints", "how many of the newest to keep"},
    {"keep_every", BM_INT, offsetof(bm_train_settings, keep_every), "0", 0, 1e6,
     "epochs",
     "n: write a checkpoint after every n-th epoch, and keep them all; 0: "
     "none"},
    {"keep_best", BM_FLAG, offsetof(bm_train_settings, keep_best), "no", 0, 0,
     NULL,
     "write a checkpoint whenever the model is the best on data.dev so far, "
     "and "
     "keep the last of these"},
    {"checkpoint_copies", BM_TEXT,
     offsetof(bm_train_settings, checkpoint_copies), "", 0, 0, "FOLDERS",
     "up to 3 folders, separated by blanks, such as on other disks, that get a "
     "copy of each checkpoint; of this run alone"},
    {"ema", BM_FLOAT, offsetof(bm_train_settings, ema), "0", 0, 0.99999, NULL,
     "fraction of the moving average of global models that each block keeps; "
     "0: no average"},
    {"label_smoothing", BM_FLOAT, offsetof(bm_train_settings, label_smoothing),
     "0", 0, 0.999, NULL,
     "share of the gradient that pulls each frame towards equal probabilities"},
    {"init", BM_TEXT, offsetof(bm_train_settings, init), "", 0, 0, "MODEL|RUN",
     "trained model, or the best one of a run, that training starts from; "
     "layers that fit are taken"},
    {"from", BM_TEXT, offsetof(bm_train_settings, from), "", 0, 0,
     "RUN[@EPOCH]",
     "run that is branched, as with bmuf train --from: the model and the "
     "states of its checkpoint after EPOCH epochs, or of its newest"},
    {"freeze", BM_TEXT, offsetof(bm_train_settings, freeze), "", 0, 0, "LAYERS",
     "layers whose weights do not move, as explain names them: 0.conv "
     "*.batchnorm"},
    {"rates", BM_TEXT, offsetof(bm_train_settings, rates), "", 0, 0,
     "LAYER:FACTOR ..",
     "factors of the learning rate of some layers: 0.blstm:0.1 3.linear:2"},
    {0},
};

static bm_status read_settings(bm_trainer *t, bm_job *job)
{
    const bm_config *config = t->config;

    BM_TRY(bm_config_fill(config, "train", bm_train_options, &t->set));
    BM_TRY(bm_config_fill(config, "block", bm_block_options, &t->block));
    BM_TRY(bm_config_fill(config, "job", bm_job_options, job));
    BM_TRY(bm_compress_check(config, bm_strategy_find(t->set.strategy)));
    return bm_layer_rates_read(&t->layer_rates, t->params, t->set.freeze,
                               t->set.rates);
}

bm_status bm_trainer_open(bm_trainer **out, const bm_config *config,
                          bm_comm *comm, bm_params *params, const bm_task *task)
{
    void *memory = NULL;
    bm_trainer *t = NULL;
    bm_job job = {0};
    bm_status status = BM_OK;

    BM_TRY(bm_agreed_alloc(comm, sizeof *t, &memory));
    t = memory;
    t->task = *task;
    t->config = config;
    t->comm = comm;
    t->params = params;
    BM_TRY_DONE(bm_comm_agree(comm, read_settings(t, &job)));
    params->layer_rates = t->layer_rates.list;
    params->n_layer_rates = t->layer_rates.n;
    t->workers = (int)job.workers;
    t->first = bm_comm_first(comm, t->workers, bm_comm_rank(comm));
    t->last = bm_comm_first(comm, t->workers, bm_comm_rank(comm) + 1);
    t->done = t->block.warmup; /* report now what cannot open later */
    BM_TRY_DONE(bm_trainer_open_phase(t));
    BM_TRY_DONE(bm_trainer_seek(t, 0));
    if (job.audit > 0)
        BM_TRY_DONE(bm_audit_open(&t->audit, config, comm, params, t->workers));
    BM_TRY_DONE(
        bm_agreed_alloc(comm, (size_t)t->workers * sizeof *t->table, &memory));
    t->table = memory;
    *out = t;
    t = NULL;
done:
    bm_trainer_close(t);
    return status;
}

void bm_trainer_close(bm_trainer *t)
{
    if (t == NULL)
        return;
    bm_trainer_close_phase(t);
    bm_audit_close(t->audit);
    t->params->layer_rates = NULL;
    t->params->n_layer_rates = 0;
    bm_layer_rates_free(&t->layer_rates);
    free(t->table);
    free(t);
}

bm_position bm_trainer_position(const bm_trainer *t)
{
    return t->at;
}

int64_t bm_trainer_batches(const bm_trainer *t, int worker)
{
    return (int64_t)t->table[worker].batches;
}

const char *bm_trainer_transport(const bm_trainer *t)
{
    return bm_strategy_transport(t->strategy);
}

bm_status bm_trainer_compare(const bm_trainer *t)
{
    if (t->strategy->ops->per == BM_BLOCK || bm_comm_size(t->comm) == 1)
        return BM_OK;
    return bm_same_model(t->comm, t->params, t->at);
}

bm_status bm_trainer_global(bm_trainer *t, float *x)
{
    return bm_strategy_global(t->strategy, x);
}

bool bm_trainer_has_ema(const bm_trainer *t)
{
    return t->ema != NULL;
}

void bm_trainer_settle(bm_trainer *t)
{
    if (bm_strategy_settle(t->strategy) && t->ema != NULL)
        bm_ema_update(t->ema);
}

bm_status bm_trainer_ema(bm_trainer *t, float *x)
{
    bm_trainer_settle(t);
    return bm_ema_get(t->ema, x);
}

size_t bm_trainer_states(const bm_trainer *t)
{
    size_t hosted = (size_t)(t->last - t->first);

    return t->most_states + hosted * (BM_SGD_STATES + 1) +
           (size_t)t->block.fragments;
}

size_t bm_trainer_state(bm_trainer *t, bm_state *out, size_t room)
{
    size_t n = 0;

    BM_ASSERT(room >= bm_trainer_states(t));
    bm_trainer_settle(t);
    n = bm_strategy_state(t->strategy, out);
    n += bm_local_state_state(t->local_state, out + n);
    n += bm_events_state(t->events, out + n);
    if (t->ema != NULL)
        n += bm_ema_state(t->ema, out + n);
    return n;
}

bm_restart_numbers bm_trainer_numbers(const bm_trainer *t)
{
    return (bm_restart_numbers){t->reference, t->chance, t->strategy->rate,
                                bm_local_state_rho(t->local_state)};
}

/* Of the block that ended at this position; not of the run's start. */
static bm_run_point run_point_before(const bm_trainer *t, bm_position at)
{
    bm_position before = {at.epoch, at.block - 1};

    if (at.block == 0) {
        before.epoch = at.epoch - 1;
        before.block =
            (int64_t)t->task.epoch(t->task.self, before.epoch).blocks - 1;
    }
    return bm_trainer_run_point(t, before);
}

bm_status bm_trainer_resume(bm_trainer *t, bm_position at,
                            bm_restart_numbers restart)
{
    bool begun = at.epoch > 0 || at.block > 0;
    bm_run_point before = {0};

    t->at = at;
    t->reference = restart.loss;
    t->chance = restart.chance;
    t->strategy->rate = restart.rate;
    BM_TRY(bm_local_state_resume(t->local_state, restart.rho));
    if (begun)
        before = run_point_before(t, at);
    return bm_strategy_resume(t->strategy, begun ? &before : NULL);
}

bm_status bm_trainer_footprint(const bm_config *config, int ranks,
                               bm_footprint *out)
{
    bm_train_settings train = {0};
    bm_block_settings block = {0};
    bm_job job = {0};
    bm_sgd_settings sgd = {0};
    bm_clock_settings clock = {0};
    bm_traits traits = {0};
    const bm_strategy_ops *ops = NULL;
    bm_footprint sum = {.memory = 2}; /* w, g */
    bm_hosting on = {.ranks = ranks};

    BM_TRY(bm_config_fill(config, "train", bm_train_options, &train));
    BM_TRY(bm_config_fill(config, "block", bm_block_options, &block));
    BM_TRY(bm_config_fill(config, "job", bm_job_options, &job));
    BM_TRY(bm_config_fill(config, "sgd", bm_sgd_options, &sgd));
    ops = bm_strategy_find(train.strategy);
    BM_TRY(bm_strategy_resolve(ops, config, (int)job.workers, &traits));
    on.workers = (double)job.workers;
    on.hosted = ceil(on.workers / ranks);
    bm_strategy_footprint(ops, &traits, &job, on, &sum);
    bm_local_state_footprint(ops, &traits, &sgd, on, &sum);
    if (bm_fragments_wanted(&block))
        bm_fragments_footprint(&block, &job, on, &sum);
    if (ops->per == BM_EVENT) {
        bm_async_workers_footprint(&traits.server_policy, on, &sum);
        BM_TRY(bm_config_fill(config, "clock", bm_clock_options, &clock));
        if (bm_clock_is_real(&clock))
            bm_realtime_footprint(clock.shards, &traits.server_policy, &sgd, on,
                                  &sum);
    }
    if (train.ema > 0)
        bm_ema_footprint(ops, on, &sum);
    if (job.audit > 0)
        bm_audit_footprint(&sgd, &sum);
    if (train.checkpoint_every > 0 || train.keep_every > 0 || train.keep_best)
        sum.memory += sum.copied;
    else
        sum.copied = 0; /* only the last one is written, without a copy */
    *out = sum;
    return BM_OK;
}
