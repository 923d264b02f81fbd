/*
 * warmup.c - the two phases of a run. In its first [block] warmup blocks
 * gradients are averaged at every step, as ssgd does. Then the strategy starts
 * with the model that this has led to, Delta = 0 and, for every worker, the
 * state of the one local update, as far as [sgd] local_state keeps any.
 */
#include "bmuf/strategies/fragments.h"
#include "bmuf/trainer/trainer_parts.h"

#include <string.h>

static const char *strategy_of(const bm_trainer *t)
{
    return t->done < t->block.warmup ? "ssgd" : t->set.strategy;
}

/* Collective. Whole, or in fragments. */
static bm_status open_strategy(bm_trainer *t)
{
    const char *name = strategy_of(t);
    const bm_strategy_ops *ops = bm_strategy_find(name);

    if (ops != NULL && ops->per == BM_BLOCK && bm_fragments_wanted(&t->block))
        return bm_fragments_open(&t->strategy, name, t->config, t->comm,
                                 t->params);
    return bm_strategy_open(&t->strategy, name, t->config, t->comm, t->params);
}

bm_status bm_trainer_open_phase(bm_trainer *t)
{
    bm_task task = bm_trainer_task(t);

    BM_TRY(open_strategy(t));
    if (t->strategy->max_states > t->most_states)
        t->most_states = t->strategy->max_states;
    BM_TRY(bm_comm_agree(t->comm,
                         bm_local_state_open(&t->local_state, t->config,
                                             t->strategy, t->first, t->last)));
    if (t->strategy->ops->per == BM_EVENT)
        BM_TRY(bm_events_open(&t->events, t->config, t->comm, t->strategy,
                              t->local_state, &task, t->first, t->last));
    if (t->set.ema == 0)
        return BM_OK;
    return bm_comm_agree(t->comm,
                         bm_ema_open(&t->ema, t->strategy, t->set.ema));
}

void bm_trainer_close_phase(bm_trainer *t)
{
    bm_ema_close(t->ema);
    bm_events_close(t->events);
    bm_local_state_close(t->local_state);
    bm_strategy_close(t->strategy);
    t->ema = NULL;
    t->events = NULL;
    t->local_state = NULL;
    t->strategy = NULL;
}

/* Collective. The next phase starts with what this one leaves: the model, which
 * all ranks have in params->w, the state of local updates, and the average. */
static bm_status change(bm_trainer *t)
{
    bm_local_state *local_state = t->local_state;
    double rate = t->strategy->rate;
    float *ema = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_trainer_compare(t));
    if (t->ema != NULL) {
        status = bm_alloc(t->params->be, t->params->n, &ema);
        BM_TRY_DONE(bm_comm_agree(t->comm, status));
        BM_TRY_DONE(bm_comm_agree(t->comm, bm_trainer_ema(t, ema)));
    }
    t->local_state = NULL;
    bm_trainer_close_phase(t);
    BM_TRY_DONE(bm_trainer_open_phase(t));
    t->strategy->rate = rate; /* checkpoints have that of the last block */
    BM_TRY_DONE(bm_local_state_take(t->local_state, local_state));
    if (ema != NULL)
        status = bm_ema_set(t->ema, ema);
done:
    if (local_state != t->local_state)
        bm_local_state_close(local_state);
    bm_free(t->params->be, ema);
    return bm_comm_agree(t->comm, status);
}

bm_status bm_trainer_seek(bm_trainer *t, int64_t blocks)
{
    const char *before = strategy_of(t);

    t->done = blocks;
    return strcmp(before, strategy_of(t)) == 0 ? BM_OK : change(t);
}
