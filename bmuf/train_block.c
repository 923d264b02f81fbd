/*
 * train_block.c - blocks of strategies that exchange once a block: one whole
 * share after the other, then all ranks meet.
 *
 * With [block] seconds a rank's time is dealt out evenly: of what is left of
 * it, each worker may use its part among the workers that are still to come. A
 * worker ends with the step that its time runs out in, at least its first one;
 * the rest of its share is skipped.
 */
#include "bmuf/trainer_parts.h"

#include "core/clock.h"

#include <math.h>

static double weight_of(const bm_row *own)
{
    return own->bad == BM_GOOD ? own->samples : 0;
}

static void begin_share(bm_trainer *t)
{
    bm_span span = bm_span_begin("exchange");

    bm_strategy_begin(t->strategy);
    bm_trainer_note_exchange(t, span);
}

/* By the trainer's clock; INFINITY: never. */
static double deadline(const bm_trainer *t, int worker, double end)
{
    double now = 0;

    if (t->block.seconds == 0)
        return INFINITY;
    now = t->clock(t->clock_self);
    return now + (end - now) / (t->last - worker);
}

/* What was asked of a device takes its time when it is done. */
static bm_status look_at_clock(bm_trainer *t, double until, bool *over)
{
    *over = false;
    if (isinf(until))
        return BM_OK;
    BM_TRY(bm_sync(t->params->be));
    *over = t->clock(t->clock_self) >= until;
    return BM_OK;
}

static bm_status learn(bm_trainer *t, int worker, bm_sgd *sgd, int64_t steps,
                       float rate, double until)
{
    bool over = false;

    for (int64_t step = 0; step < steps && !over; step++) {
        double n = 0;

        BM_TRY(bm_trainer_gradient(t, worker, step, &n));
        if (n == 0)
            continue;
        bm_trainer_update(t, sgd, rate);
        BM_TRY(look_at_clock(t, until, &over));
    }
    return BM_OK;
}

/* One worker's share, and its vote. */
static bm_status train_share(bm_trainer *t, int worker, int64_t steps,
                             float rate, double end)
{
    bm_sgd *sgd = NULL;
    bm_row *own = &t->table[worker];
    bool good = true;

    begin_share(t);
    sgd = bm_local_state_begin(t->local_state, worker);
    BM_TRY(learn(t, worker, sgd, steps, rate, deadline(t, worker, end)));
    BM_TRY(bm_trainer_note_score(t, worker));
    BM_TRY(bm_sgd_skipped(sgd, &own->bad_steps));
    if (own->samples > 0)
        own->bad = bm_trainer_verdict(t, &own->score);
    BM_TRY(bm_trainer_end_share(t, worker, weight_of(own), &good));
    if (!good)
        own->bad = BM_NOT_FINITE;
    if (own->bad != BM_GOOD)
        bm_strategy_leave_out(t->strategy, worker);
    return bm_local_state_end(t->local_state, worker, weight_of(own),
                              own->bad != BM_GOOD, &own->steps);
}

/* BM_BLOCK: with no good model left there is nothing to go on from. */
static bm_status someone_is_good(const bm_trainer *t)
{
    double samples = 0, good = 0;

    for (int k = 0; k < t->workers; k++) {
        samples += t->table[k].samples;
        good += weight_of(&t->table[k]);
    }
    return samples > 0 && good == 0 ? bm_trainer_diverged(t) : BM_OK;
}

/* Updates made in this block, the mean over workers; 0 without any data. */
static double mean_steps(const bm_trainer *t)
{
    double sum = 0, weight = 0;

    for (int k = 0; k < t->workers; k++) {
        sum += weight_of(&t->table[k]) * t->table[k].steps;
        weight += weight_of(&t->table[k]);
    }
    return weight > 0 ? sum / weight : 0;
}

static bm_status exchange_models(bm_trainer *t)
{
    BM_TRY(bm_trainer_share_table(t));
    BM_TRY(bm_comm_agree(t->comm, someone_is_good(t)));
    BM_TRY(bm_comm_agree(t->comm, bm_strategy_exchange(t->strategy)));
    return bm_local_state_exchange(t->local_state, mean_steps(t));
}

bm_status bm_trainer_shares(bm_trainer *t, int64_t steps, float rate)
{
    bm_status status = BM_OK;
    double since = bm_clock();
    double end = t->clock(t->clock_self) + t->block.seconds;
    bm_span span;

    for (int k = t->first; k < t->last && status == BM_OK; k++)
        status = train_share(t, k, steps, rate, end);
    BM_TRY(bm_trainer_meet(t, status, since));
    span = bm_span_begin("exchange");
    status = exchange_models(t);
    t->exchange_s += bm_span_end(span);
    return status;
}
