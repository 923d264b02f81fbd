/*
 * train_block.c - one block: all loops over shares, mini-batches and steps, and
 * the exchange at their end. The call chain of a block of bmuf, from here to
 * the filter:
 *
 *     bm_trainer_block
 *       train_shares                  (train_one_model: per step or event)
 *         bm_trainer_share            for each worker hosted here
 *           bm_strategy_begin           w <- start
 *           learn                       task.gradient, bm_sgd_step, and again
 *           bm_strategy_worker_end      adds w - start to the sum
 *         exchange_models             when all ranks have met
 *           bm_strategy_exchange
 *             bm_filtered_exchange      strategies/filtered.c
 *               bm_exchange_update      exchange/exchange.c: sums G, and
 *                 bm_filter_block       filters each chunk of this rank's slice
 *           bm_local_state_exchange
 *       add_up                        scores of all workers
 *
 * With [block] seconds a rank divides its time evenly among its workers: each
 * one may use an equal part of the time that is left. It stops after the step
 * in which its time runs out, at the earliest after the first; the rest of its
 * share is skipped.
 */
#include "bmuf/trainer/trainer_parts.h"

#include "core/clock.h"
#include "core/log.h"
#include "core/text/words.h"
#include "core/trace/span.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- scores -------------------------------------------------------------- */

/* Adds the worker's score to its row. */
static bm_status note_score(bm_trainer *t, int worker)
{
    bm_row *own = &t->table[worker];
    bm_score score = {0};
    double batches = 0;

    BM_TRY(t->task.score(t->task.self, worker, &score, &batches));
    bm_score_add(&own->score, &score);
    own->batches += batches;
    return BM_OK;
}

/* What a loss is compared with: the mean loss of the block before, multiplied by
 * the ratio of the losses of chance if sequences are longer than in that block.
 * In a run's first block that of its first mini-batch, with weights that may be
 * worse than chance, or chance. */
static double reference(const bm_trainer *t, const bm_score *first,
                        double chance)
{
    double longer = t->chance > 0 ? fmax(chance / t->chance, 1) : 1;

    if (t->reference > 0)
        return t->reference * longer;
    return first->loss > first->chance ? chance * first->loss / first->chance
                                       : chance;
}

/* May what was learned with this score be used? */
static bm_reason judge(const bm_trainer *t, const bm_score *s,
                       const bm_score *first)
{
    double loss = s->loss / s->sequences, chance = s->chance / s->sequences;

    if (s->sequences == 0 || !isfinite(s->loss))
        return BM_NO_LOSS;
    if (t->set.diverged > 0 &&
        loss - reference(t, first, chance) > t->set.diverged * chance)
        return BM_DIVERGED;
    return BM_GOOD;
}

/* Collective. All ranks get all rows. */
static bm_status sum_table(bm_trainer *t)
{
    enum { COLUMNS = sizeof(bm_row) / sizeof(double) };

    return bm_comm_sum(t->comm, (double *)(void *)t->table,
                       COLUMNS * (size_t)t->workers);
}

/* The losses that were compared, in nats a sequence; "": none is a number. */
static void print_rise(const bm_trainer *t, char *out, size_t room)
{
    bm_score all = {0};

    out[0] = '\0';
    for (int k = 0; k < t->workers; k++)
        bm_score_add(&all, &t->table[k].score);
    if (all.sequences > 0 && isfinite(all.loss) && t->reference > 0)
        snprintf(out, room,
                 " (loss %.4g, in the block before %.4g; equal logits have "
                 "%.4g and %.4g; a rise by more than train.diverged = %g of "
                 "that is too much)",
                 all.loss / all.sequences, t->reference,
                 all.chance / all.sequences, t->chance, t->set.diverged);
}

static bm_status diverged(const bm_trainer *t)
{
    const bm_strategy_ops *ops = bm_strategy_find(t->set.strategy);
    bool begun = t->done > 0; /* so that there may be checkpoints */
    bm_sgd_settings sgd = {0};
    char zeta[64] = "", rise[240];

    bm_config_peek(t->config, "sgd", bm_sgd_options, &sgd);
    print_rise(t, rise, sizeof rise);
    if (t->strategy->traits.filtered)
        snprintf(zeta, sizeof zeta, "%s %s.%s", sgd.clip > 0 ? "," : " or",
                 ops->name, ops->settings.rate);
    return BM_FAIL(
        BM_ERR_NUMERIC,
        "training has diverged: no result of block %lld of epoch %lld can be "
        "used%s%s. Lower train.rate%s%s, or take larger blocks if they differ "
        "much, and give another --out%s",
        (long long)t->at.block + 1, (long long)t->at.epoch + 1, rise,
        begun ? "; checkpoints of earlier blocks are unchanged" : "", zeta,
        sgd.clip > 0 ? " or sgd.clip" : ", set sgd.clip",
        begun ? "; --from RUN@EPOCH goes on from a checkpoint" : "");
}

/* ---- what all blocks do -------------------------------------------------- */

/* As bm_task's gradient; counts the samples. */
static bm_status find_gradient(bm_trainer *t, int worker, int64_t step,
                               double *n)
{
    bm_row *own = &t->table[worker];

    BM_TRY(t->task.gradient(t->task.self, t->params, worker, step, n));
    own->samples += *n;
    own->gradients += *n > 0;
    if (t->reference > 0 || *n == 0 || own->gradients > 1)
        return BM_OK;
    BM_TRY(note_score(t, worker));
    own->first = own->score;
    return BM_OK;
}

static bm_status gradient_of(void *self, bm_params *params, int worker,
                             int64_t step, double *n)
{
    bm_trainer *t = self;

    BM_ASSERT(params == t->params);
    return find_gradient(t, worker, step, n);
}

static int64_t steps_of(void *self, int worker)
{
    const bm_trainer *t = self;

    return t->task.steps(t->task.self, worker);
}

bm_task bm_trainer_task(bm_trainer *t)
{
    return (bm_task){.self = t, .gradient = gradient_of, .steps = steps_of};
}

void bm_trainer_update(bm_trainer *t, bm_sgd *sgd, float rate)
{
    bm_span span = bm_span_begin("update");

    bm_time_as(t->params->be, BM_PART_UPDATE);
    bm_sgd_step(sgd, rate);
    bm_time_as(t->params->be, BM_PART_OTHER);
    t->update_s += bm_span_end(span);
}

/* Time of the exchange that was measured as part of computing. */
static void note_exchange(bm_trainer *t, bm_span span)
{
    double seconds = bm_span_end(span);

    t->exchange_s += seconds;
    t->compute_s -= seconds;
}

/* *good as bm_strategy_worker_end has it. What a device has queued before is no
 * part of the exchange; strategies with their own wait themselves. */
static bm_status end_worker(bm_trainer *t, int worker, double samples,
                            bool *good)
{
    bm_span span;
    bm_status status = BM_OK;

    if (t->strategy->exchange != NULL || t->strategy->traits.no_exchange)
        bm_remember(t->params->be, bm_sync(t->params->be));
    span = bm_span_begin("exchange");
    status = bm_strategy_worker_end(t->strategy, worker, samples, good);
    note_exchange(t, span);
    return status;
}

/* Collective. All ranks wait here; the failure of one fails all. `since`: when
 * computing began. */
static bm_status meet(bm_trainer *t, bm_status own, double since)
{
    bm_span span = bm_span_begin("wait");
    bm_status status = bm_comm_agree(t->comm, own);

    t->compute_s += span.began - since;
    t->wait_s += bm_span_end(span);
    return status;
}

/* ---- shares: BM_BLOCK ---------------------------------------------------- */

static double weight_of(const bm_row *own)
{
    return own->bad == BM_GOOD ? own->samples : 0;
}

static void begin_share(bm_trainer *t, int worker)
{
    bm_span span = bm_span_begin("exchange");

    bm_strategy_begin(t->strategy, worker, NULL);
    note_exchange(t, span);
}

/* Workers hosted here, from this one on, that have a share; at least 1. */
static int shares_left(const bm_trainer *t, int worker)
{
    int n = 0;

    for (int k = worker; k < t->last; k++)
        n += t->task.steps(t->task.self, k) > 0;
    return n > 0 ? n : 1;
}

/* When the worker's time runs out, of a rank's that ends at `end`; INFINITY:
 * never. */
static double deadline(const bm_trainer *t, int worker, double end)
{
    double now = 0;

    if (t->block.seconds == 0)
        return INFINITY;
    now = bm_clock();
    return now + (end - now) / shares_left(t, worker);
}

/* Waits for what a device has queued: its time counts, too. */
static bm_status check_time(bm_trainer *t, double until, bool *over)
{
    *over = false;
    if (isinf(until))
        return BM_OK;
    BM_TRY(bm_sync(t->params->be));
    *over = bm_clock() >= until;
    return BM_OK;
}

static bm_status learn(bm_trainer *t, int worker, bm_sgd *sgd, int64_t steps,
                       float rate, double until)
{
    bool over = false;

    for (int64_t step = 0; step < steps && !over; step++) {
        double n = 0;

        BM_TRY(find_gradient(t, worker, step, &n));
        if (n == 0)
            continue;
        bm_trainer_update(t, sgd, rate);
        BM_TRY(check_time(t, until, &over));
    }
    return BM_OK;
}

bm_status bm_trainer_share(bm_trainer *t, int worker, int64_t steps, float rate,
                           double end)
{
    bm_sgd *sgd = NULL;
    bm_row *own = &t->table[worker];
    bool good = true;

    begin_share(t, worker);
    sgd = bm_local_state_begin(t->local_state, worker);
    BM_TRY(learn(t, worker, sgd, steps, rate, deadline(t, worker, end)));
    BM_TRY(note_score(t, worker));
    BM_TRY(bm_sgd_skipped(sgd, &own->bad_steps));
    if (own->samples > 0)
        own->bad = judge(t, &own->score, &own->first);
    good = own->bad == BM_GOOD;
    BM_TRY(end_worker(t, worker, weight_of(own), &good));
    if (!good && own->bad == BM_GOOD)
        own->bad = BM_NOT_FINITE;
    return bm_local_state_end(t->local_state, worker, weight_of(own),
                              own->bad != BM_GOOD, &own->steps);
}

/* Whether a worker had a sample that the loss can use. */
static bool has_samples(const bm_trainer *t)
{
    bool any = false;

    for (int k = 0; k < t->workers; k++)
        any = any || t->table[k].samples > 0;
    return any;
}

/* Fails if no worker's model counts, unless none had samples. */
static bm_status someone_is_good(const bm_trainer *t)
{
    double good = 0;

    for (int k = 0; k < t->workers; k++)
        good += weight_of(&t->table[k]);
    return good == 0 && has_samples(t) ? diverged(t) : BM_OK;
}

/* Updates made in this block, the mean over workers, weighted as their models
 * are; 0 without any data. */
static double mean_steps(const bm_trainer *t)
{
    double sum = 0, weight = 0;

    for (int k = 0; k < t->workers; k++) {
        double of_one =
            bm_mean_weight(&t->strategy->traits, weight_of(&t->table[k]));

        sum += of_one * t->table[k].steps;
        weight += of_one;
    }
    return weight > 0 ? sum / weight : 0;
}

static bm_status exchange_models(bm_trainer *t)
{
    BM_TRY(sum_table(t));
    BM_TRY(bm_comm_agree(t->comm, someone_is_good(t)));
    bm_trainer_settle(t);
    BM_TRY(bm_comm_agree(t->comm, bm_strategy_exchange(t->strategy)));
    return bm_local_state_exchange(t->local_state, mean_steps(t));
}

/* One whole share after the other, then all ranks meet. */
static bm_status train_shares(bm_trainer *t, int64_t steps, float rate)
{
    bm_status status = BM_OK;
    double since = bm_clock(), end = since + t->block.seconds;
    bm_span span;

    if (bm_trainer_audited(t))
        status = bm_trainer_train_twice(t, steps, rate);
    else
        for (int k = t->first; k < t->last && status == BM_OK; k++)
            status = bm_trainer_share(t, k, steps, rate, end);
    BM_TRY(meet(t, status, since));
    span = bm_span_begin("exchange");
    status = exchange_models(t);
    t->exchange_s += bm_span_end(span);
    return status;
}

/* ---- steps and events ---------------------------------------------------- */

/* There is one model, and all scores are of it. Fails unless they are good, or
 * no worker had samples. */
static bm_status all_is_good(const bm_trainer *t)
{
    bm_score sum = {0}, first = {0};

    if (!has_samples(t))
        return BM_OK;
    for (int k = 0; k < t->workers; k++) {
        bm_score_add(&sum, &t->table[k].score);
        bm_score_add(&first, &t->table[k].first);
    }
    return judge(t, &sum, &first) == BM_GOOD ? BM_OK : diverged(t);
}

/* One worker's gradient; buckets of it may be exchanged while the rest is
 * computed. */
static void add_gradient(bm_trainer *t, int worker, int64_t step,
                         bm_status *own)
{
    bool good = true;
    double n = 0;

    bm_strategy_begin(t->strategy, worker, &n);
    if (*own == BM_OK)
        *own = find_gradient(t, worker, step, &n);
    bm_keep_first(own, end_worker(t, worker, *own == BM_OK ? n : 0, &good));
    t->table[worker].bad_steps += !good;
    t->exchange_s += t->strategy->used_s;
    t->compute_s -= t->strategy->used_s;
}

/* The gradients of one step, of all workers hosted here. A rank that fails
 * still takes part in the exchange, without samples. */
static void add_gradients(bm_trainer *t, int64_t step, bm_status *own)
{
    for (int k = t->first; k < t->last; k++)
        add_gradient(t, k, step, own);
}

/* BM_STEP: all ranks meet at every step, with or without data of their own. */
static bm_status train_steps(bm_trainer *t, int64_t steps, float rate)
{
    bm_status status = BM_OK;
    double since = 0;
    bm_span span;

    for (int64_t step = 0; step < steps; step++) {
        since = bm_clock();
        add_gradients(t, step, &status);
        t->compute_s += bm_clock() - since;
        span = bm_span_begin("exchange");
        bm_keep_first(&status, bm_strategy_exchange(t->strategy));
        t->exchange_s += bm_span_end(span);
        since = bm_clock();
        if (t->strategy->update.weight > 0)
            bm_trainer_update(t, bm_local_state_of(t->local_state, t->first),
                              rate);
        t->compute_s += bm_clock() - since;
    }
    return status;
}

/* BM_EVENT: all ranks meet at every update of the server. */
static bm_status train_events(bm_trainer *t, float rate)
{
    bm_status status =
        bm_events_block(t->events, t->at, rate, &t->compute_s, &t->exchange_s);

    for (int k = t->first; k < t->last; k++) {
        const bm_async_worker *of_k = bm_events_worker(t->events, k);

        t->table[k].samples = of_k->seen;
        t->table[k].bad_steps = of_k->bad_steps;
    }
    return status;
}

/* Both, to the end of the block, when all ranks have all scores. */
static bm_status train_one_model(bm_trainer *t, int64_t steps, float rate)
{
    bm_status status =
        t->events != NULL ? train_events(t, rate) : train_steps(t, steps, rate);
    double updates = 0;
    bm_span span;

    if (status == BM_OK)
        status = bm_sync(t->params->be);
    for (int k = t->first; k < t->last && status == BM_OK; k++)
        status = note_score(t, k);
    if (status == BM_OK)
        status = bm_sgd_skipped(bm_local_state_of(t->local_state, t->first),
                                &updates);
    if (t->first == 0) /* all ranks skip the same updates */
        t->table[0].bad_steps += updates;
    BM_TRY(meet(t, status, bm_clock()));
    span = bm_span_begin("exchange");
    status = sum_table(t);
    if (status == BM_OK)
        status = bm_comm_agree(t->comm, all_is_good(t));
    t->exchange_s += bm_span_end(span);
    return status;
}

/* ---- a block ------------------------------------------------------------- */

/* Adds rows in the order of workers, so that the bits depend on N alone, and
 * logs who is left out. */
static void add_up(const bm_trainer *t, bm_block_report *out)
{
    static const char *const why[] = {
        [BM_NOT_FINITE] = "its model has NaN or infinite weights",
        [BM_NO_LOSS] = "every loss was NaN or infinite",
        [BM_DIVERGED] = "its loss has diverged"};

    for (int k = 0; k < t->workers; k++) {
        const bm_row *of_k = &t->table[k];

        out->bad_steps += of_k->bad_steps;
        if (of_k->bad != BM_GOOD) {
            out->left_out++;
            if (bm_comm_rank(t->comm) == 0)
                bm_log(BM_WARNING,
                       "worker %d is left out of block %lld of epoch %lld: %s",
                       k, (long long)t->at.block + 1,
                       (long long)t->at.epoch + 1, why[(int)of_k->bad]);
            continue;
        }
        out->samples += of_k->samples;
        bm_score_add(&out->score, &of_k->score);
    }
}

/* Once, as the journal has the number of every block. */
static void warn_of_bad_steps(bm_trainer *t, double n)
{
    if (n > 0 && !t->warned && bm_comm_rank(t->comm) == 0)
        bm_log(
            BM_WARNING,
            "skipped %s of block %lld of epoch %lld: the gradient was NaN or "
            "infinite; later ones are counted in the journal, as bad_steps, "
            "without a warning. If there are many, lower train.rate, and look "
            "at the data with bmuf check",
            bm_count_noun((long long)n, "step").text,
            (long long)t->at.block + 1, (long long)t->at.epoch + 1);
    t->warned = t->warned || n > 0;
}

/* Collective. *steps > 0, or BM_ERR_FORMAT. */
static bm_status next_block(bm_trainer *t, int64_t *steps)
{
    BM_TRY(t->task.block(t->task.self, t->at, steps));
    if (*steps == 0) {
        t->at = (bm_position){t->at.epoch + 1, 0};
        BM_TRY(t->task.block(t->task.self, t->at, steps));
    }
    if (*steps == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "data.train has no sequences to train on");
    return BM_OK;
}

bm_run_point bm_trainer_run_point(const bm_trainer *t, bm_position at)
{
    bm_epoch_size size = t->task.epoch(t->task.self, at.epoch);

    return (bm_run_point){
        .workers = bm_block_workers(&t->block, at.epoch, t->workers),
        .epochs = (double)at.epoch + (double)at.block / size.blocks,
        .block_frames = size.frames / size.blocks};
}

/* Collective. Eta and zeta of the block. */
static bm_status set_filter(bm_trainer *t)
{
    bm_run_point now = bm_trainer_run_point(t, t->at);

    return bm_strategy_update_settings(t->strategy, &now);
}

/* The number of the block in its phase. */
static int64_t phase_block(const bm_trainer *t)
{
    return t->done < t->block.warmup ? t->done : t->done - t->block.warmup;
}

bm_status bm_trainer_block(bm_trainer *t, double rate, bm_block_report *report)
{
    bm_block_report out = {0};
    int64_t steps = 0;
    double since = bm_clock();
    bm_traffic before = bm_comm_traffic(t->comm);

    t->compute_s = t->wait_s = t->exchange_s = t->update_s = t->audit_s = 0;
    BM_TRY(meet(t, next_block(t, &steps), since));
    memset(t->table, 0, (size_t)t->workers * sizeof *t->table);
    bm_strategy_block(t->strategy, phase_block(t), rate);
    BM_TRY(set_filter(t));
    if (t->strategy->ops->per == BM_BLOCK && bm_trainer_audited(t))
        out.audited = t->workers;
    if (t->strategy->ops->per == BM_BLOCK)
        BM_TRY(train_shares(t, steps, (float)rate));
    else
        BM_TRY(train_one_model(t, steps, (float)rate));
    BM_TRY(bm_comm_busiest(t->comm, before, &out.traffic));
    add_up(t, &out);
    warn_of_bad_steps(t, out.bad_steps);
    BM_TRY(bm_events_service(t->events, &out.service));
    if (t->ema != NULL && !t->strategy->late && out.samples > 0)
        bm_ema_update(t->ema);
    if (out.score.sequences > 0) {
        t->reference = out.score.loss / out.score.sequences;
        t->chance = out.score.chance / out.score.sequences;
    }
    out.at = t->at;
    out.update = t->strategy->update;
    out.filtered = t->strategy->traits.filtered;
    out.filter = t->strategy->traits.filter;
    out.compute_s = t->compute_s;
    out.wait_s = t->wait_s;
    out.exchange_s = t->exchange_s;
    out.audit_s = t->audit_s;
    out.update_s = bm_on_host(t->params->be)
                       ? t->update_s
                       : bm_timed(t->params->be, BM_PART_UPDATE);
    t->at.block++;
    *report = out;
    return bm_trainer_seek(t, t->done + 1);
}
