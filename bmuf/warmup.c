/*
 * warmup.c - the two phases of a run. For its first [block] warmup blocks
 * gradients are averaged at every step, as ssgd does. Then the strategy begins,
 * with the model that this has led to, Delta = 0, and what the one update
 * remembers for every worker, as far as [sgd] local_state lets it remember
 * anything.
 */
#include "bmuf/trainer_parts.h"

#include <string.h>

static const char *strategy_of(const bm_trainer *t)
{
    return t->done < t->block.warmup ? "ssgd" : t->set.strategy;
}

bm_status bm_trainer_open_phase(bm_trainer *t)
{
    BM_TRY(bm_strategy_open(&t->strategy, strategy_of(t), t->config, t->comm,
                            t->params));
    BM_TRY(bm_momenta_open(&t->momenta, t->config, t->strategy, t->first,
                           t->last));
    if (t->set.ema > 0)
        BM_TRY(bm_ema_open(&t->ema, t->strategy, t->set.ema));
    return BM_OK;
}

void bm_trainer_close_phase(bm_trainer *t)
{
    bm_ema_close(t->ema);
    bm_momenta_close(t->momenta);
    bm_strategy_close(t->strategy);
    t->ema = NULL;
    t->momenta = NULL;
    t->strategy = NULL;
}

/* Collective. The next phase begins with what this one leaves: the model, which
 * all ranks have in params->w, the updates' memory, and the average. */
static bm_status change(bm_trainer *t)
{
    bm_momenta *momenta = t->momenta;
    double rate = t->strategy->rate;
    float *ema = NULL;
    bm_status status = BM_OK;

    if (t->ema != NULL) {
        status = bm_alloc(t->params->be, t->params->n, &ema);
        BM_TRY_DONE(bm_comm_agree(t->comm, status));
        BM_TRY_DONE(bm_ema_get(t->ema, ema));
    }
    t->momenta = NULL;
    bm_trainer_close_phase(t);
    BM_TRY_DONE(bm_trainer_open_phase(t));
    t->strategy->rate = rate;
    BM_TRY_DONE(bm_momenta_take(t->momenta, momenta));
    if (ema != NULL)
        status = bm_ema_set(t->ema, ema);
done:
    if (momenta != t->momenta)
        bm_momenta_close(momenta);
    bm_free(t->params->be, ema);
    return bm_comm_agree(t->comm, status);
}

bm_status bm_trainer_seek(bm_trainer *t, int64_t blocks)
{
    const char *before = strategy_of(t);

    t->done = blocks;
    return strcmp(before, strategy_of(t)) == 0 ? BM_OK : change(t);
}
