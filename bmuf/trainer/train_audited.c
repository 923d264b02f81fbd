/*
 * train_audited.c - the shares of an audited block: each one is computed twice
 * (audit.h).
 */
#include "bmuf/trainer/trainer_parts.h"

#include "core/trace/span.h"

#include <math.h>

bool bm_trainer_audited(const bm_trainer *t)
{
    return t->audit != NULL && t->task.audited != NULL &&
           t->task.audited(t->task.self);
}

/* A worker's share, without a trace: its result is in params->w. */
static bm_status train_again(bm_trainer *t, int worker, bm_sgd *sgd,
                             int64_t steps, float rate)
{
    double skipped = 0, batches = 0;
    bm_score score = {0};

    bm_strategy_begin(t->strategy, worker, NULL);
    for (int64_t step = 0; step < steps; step++) {
        double n = 0;

        BM_TRY(t->task.gradient(t->task.self, t->params, worker, step, &n));
        if (n > 0)
            bm_trainer_update(t, sgd, rate);
    }
    BM_TRY(t->task.score(t->task.self, worker, &score, &batches));
    return bm_sgd_skipped(sgd, &skipped);
}

/* The same, as an audit. */
static bm_status compute_again(bm_trainer *t, int worker, bm_sgd *sgd,
                               int64_t steps, float rate)
{
    bm_span span = bm_span_begin("audit");
    bm_status status = BM_OK;

    if (t->task.audit != NULL)
        t->task.audit(t->task.self, true);
    status = train_again(t, worker, sgd, steps, rate);
    if (t->task.audit != NULL)
        t->task.audit(t->task.self, false);
    t->audit_s += bm_span_end(span);
    return status;
}

/* Collective. Both shares of turn j once more, after a difference. */
static bm_status find_culprit(bm_trainer *t, int j, int64_t steps, float rate)
{
    bm_audit *a = t->audit;
    int own = bm_audit_own(a, j), other = bm_audit_other(a, j);
    bm_status status = BM_OK;

    if (own >= 0)
        status = compute_again(t, own, bm_audit_begin_own(a), steps, rate);
    if (own >= 0 && status == BM_OK)
        status = bm_audit_repeat_own(a, j);
    if (other >= 0 && status == BM_OK)
        status = compute_again(t, other, bm_audit_begin(a), steps, rate);
    if (other >= 0 && status == BM_OK)
        status = bm_audit_repeat_other(a, j);
    BM_TRY(bm_comm_agree(t->comm, status));
    return bm_audit_verdict(a, t->at);
}

/* Collective. Turn j: the share of a worker of each rank, and once more on the
 * next rank. */
static bm_status train_turn(bm_trainer *t, int j, int64_t steps, float rate)
{
    bm_audit *a = t->audit;
    int own = bm_audit_own(a, j), other = bm_audit_other(a, j);
    bool differs = false;
    bm_status status = BM_OK;

    BM_TRY(bm_audit_lend(
        a, j, own >= 0 ? bm_local_state_of(t->local_state, own) : NULL));
    if (own >= 0)
        status = bm_trainer_share(t, own, steps, rate, INFINITY);
    if (status == BM_OK)
        status = bm_audit_keep(a, j);
    if (other >= 0 && status == BM_OK)
        status = compute_again(t, other, bm_audit_begin(a), steps, rate);
    BM_TRY(bm_comm_agree(t->comm, status));
    BM_TRY(bm_audit_compare(a, j, &differs));
    return differs ? find_culprit(t, j, steps, rate) : BM_OK;
}

bm_status bm_trainer_train_twice(bm_trainer *t, int64_t steps, float rate)
{
    for (int j = 0; j < bm_audit_turns(t->audit); j++)
        BM_TRY(train_turn(t, j, steps, rate));
    return BM_OK;
}
