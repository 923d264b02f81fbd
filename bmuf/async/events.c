#include "bmuf/async/events.h"

#include "bmuf/async/realtime.h"
#include "bmuf/async/service.h"
#include "bmuf/async/virtual_clock.h"
#include "comm/agreed_alloc.h"
#include "core/trace/span.h"

#include <stdlib.h>
#include <string.h>

/* A worker's progress on the virtual clock, equal on all ranks. */
typedef struct progress {
    bool trained; /* its next push is computed */
    double known; /* version of W in its model */
    double since; /* steps since its last fetch, at its next push */
} progress;

struct bm_events {
    bm_comm *comm;               /* borrowed */
    bm_strategy *strategy;       /* borrowed; params->w is W */
    bm_local_state *local_state; /* borrowed */
    bm_task task;
    const bm_server_policy *policy; /* borrowed; the strategy's */
    int workers, first, last;       /* hosted here: [first, last) */
    bm_async_workers *async_workers;
    bm_virtual_clock *clock; /* NULL: clock.kind = real */
    bm_realtime *realtime;   /* NULL: clock.kind = virtual */
    progress *of;            /* [workers] */
    int *who;                /* [workers]: the workers of an update */
    double *table;           /* [2 workers]: for sums over ranks */
    double *stale;           /* [STALE workers + 1]: service.stale */
    double version;
    float rate;
    double compute_s, exchange_s;
    bm_service service;
};

enum { STALE = 8 }; /* the histogram of staleness ends at STALE N */

/* ---- open ---------------------------------------------------------------- */

static bm_status open_lists(bm_events *e)
{
    size_t n = (size_t)e->workers;

    e->of = calloc(n, sizeof *e->of);
    e->who = calloc(n, sizeof *e->who);
    e->table = calloc(2 * n, sizeof *e->table);
    e->stale = calloc(STALE * n + 1, sizeof *e->stale);
    if (e->of == NULL || e->who == NULL || e->table == NULL || e->stale == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d asynchronous workers",
                       e->workers);
    return BM_OK;
}

/* Collective. */
static bm_status open_clock(bm_events *e, const bm_config *config)
{
    bm_clock_settings set = {0};

    BM_TRY(bm_comm_agree(
        e->comm, bm_config_fill(config, "clock", bm_clock_options, &set)));
    if (bm_clock_is_real(&set))
        return bm_realtime_open(&e->realtime, config, e->comm, e->strategy,
                                e->local_state, e->async_workers, set.shards);
    return bm_comm_agree(
        e->comm, bm_virtual_clock_open(&e->clock, &set, e->policy, e->workers,
                                       (uint64_t)e->strategy->job.seed));
}

bm_status bm_events_open(bm_events **out, const bm_config *config,
                         bm_comm *comm, bm_strategy *strategy,
                         bm_local_state *local_state, const bm_task *task,
                         int first, int last)
{
    void *memory = NULL;
    bm_events *e = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_agreed_alloc(comm, sizeof *e, &memory));
    e = memory;
    e->comm = comm;
    e->strategy = strategy;
    e->local_state = local_state;
    e->task = *task;
    e->policy = &strategy->traits.server_policy;
    e->workers = (int)strategy->job.workers;
    e->first = first;
    e->last = last;
    status = open_lists(e);
    if (status == BM_OK)
        status = bm_async_workers_open(&e->async_workers, config, strategy,
                                       local_state, task, first, last);
    BM_TRY_DONE(bm_comm_agree(comm, status));
    BM_TRY_DONE(open_clock(e, config));
    *out = e;
    e = NULL;
done:
    bm_events_close(e);
    return status;
}

void bm_events_close(bm_events *e)
{
    if (e == NULL)
        return;
    bm_realtime_close(e->realtime);
    bm_async_workers_close(e->async_workers);
    bm_virtual_clock_close(e->clock);
    free(e->of);
    free(e->who);
    free(e->table);
    free(e->stale);
    free(e);
}

/* ---- counters ------------------------------------------------------------ */

static double staleness(const bm_events *e, int worker)
{
    return e->version - e->of[worker].known;
}

static void note_push(bm_events *e, int worker)
{
    bm_service_push(&e->service, e->stale, staleness(e, worker),
                    e->strategy->params->n);
}

static void note_pull(bm_events *e)
{
    bm_service_pull(&e->service, e->strategy->params->n);
}

/* ---- an update on the virtual clock -------------------------------------- */

static bool is_here(const bm_events *e, int worker)
{
    return worker >= e->first && worker < e->last;
}

static bool is_member(const bm_events *e, int n, int worker)
{
    for (int i = 0; i < n; i++)
        if (e->who[i] == worker)
            return true;
    return false;
}

/* Does the worker fetch W at the end of its period? */
static bool fetches(const bm_events *e, int worker)
{
    return e->policy->push != BM_ELASTIC &&
           e->of[worker].since >= (double)e->policy->fetch_every;
}

/* Trains all workers that have data left and no push computed, so that ranks
 * train at the same time. */
static void train_all(bm_events *e, bm_status *own)
{
    bm_span span = bm_span_begin("learn");

    bm_async_workers_save(e->async_workers);
    for (int k = 0; k < e->workers; k++) {
        bm_period at = bm_virtual_clock_period(e->clock, k);

        if (e->of[k].trained || at.from == at.to)
            continue;
        e->of[k].trained = true;
        if (is_here(e, k) && *own == BM_OK)
            *own = bm_async_workers_train(e->async_workers, k, at, e->rate,
                                          !fetches(e, k));
    }
    bm_async_workers_restore(e->async_workers);
    e->compute_s += bm_span_end(span);
}

/* Scales a worker's push; returns its weight in the mean. */
static double prepare(bm_events *e, int worker)
{
    const bm_params *p = e->strategy->params;
    bm_async_worker *own = bm_async_workers_of(e->async_workers, worker);
    double scale = bm_server_policy_scale(e->policy, staleness(e, worker));

    if (e->policy->push == BM_ELASTIC) {
        bm_async_workers_elastic_push(e->async_workers, worker);
        return 1;
    }
    if (scale != 1)
        bm_axpby(p->be, p->n, (float)scale, own->push, 0, own->push);
    return own->samples;
}

/* g <- the mean of the pushes of n workers. A rank that has failed takes part
 * with weight 0. */
static void add_pushes(bm_events *e, int n, bm_status *own)
{
    for (int k = e->first; k < e->last; k++) {
        bm_async_worker *of = bm_async_workers_of(e->async_workers, k);
        bool pushes = is_member(e, n, k) && *own == BM_OK, good = true;
        double weight = pushes ? prepare(e, k) : 0;

        bm_keep_first(own, bm_exchange_add(e->strategy->exchange, k, of->push,
                                           NULL, weight, &good));
        of->bad_steps += !good;
        if (e->policy->push == BM_ELASTIC && pushes)
            bm_async_workers_elastic_move(e->async_workers, k, good);
    }
    bm_keep_first(own, bm_strategy_exchange(e->strategy));
}

/* Makes the next version of W from g. */
static void update(bm_events *e)
{
    bm_params *p = e->strategy->params;

    if (e->policy->push == BM_GRADIENT)
        bm_sgd_step(bm_local_state_of(e->local_state, e->first), e->rate);
    else
        bm_axpby(p->be, p->n, 1, p->g, 1, p->w);
}

/* Starts the next period of a worker that has pushed; fetches W if due. */
static void resume(bm_events *e, int worker)
{
    progress *of = &e->of[worker];
    bm_period at = bm_virtual_clock_period(e->clock, worker);

    of->trained = false;
    if (at.from == at.to)
        return;
    if (e->policy->push == BM_ELASTIC)
        of->known = e->version;
    if (fetches(e, worker)) {
        note_pull(e);
        of->known = e->version;
        of->since = 0;
        if (is_here(e, worker))
            bm_async_workers_fetch(e->async_workers, worker);
    }
    of->since += (double)(at.to - at.from);
}

/* The n workers in `who` push, W is updated, and they resume. */
static void exchange(bm_events *e, int n, bm_status *own)
{
    bm_span span = bm_span_begin("exchange");

    for (int i = 0; i < n; i++) {
        note_push(e, e->who[i]);
        if (e->policy->push == BM_ELASTIC)
            note_pull(e);
    }
    add_pushes(e, n, own);
    e->exchange_s += bm_span_end(span);
    span = bm_span_begin("update");
    if (e->strategy->update.weight > 0) {
        update(e);
        e->version++;
        for (int i = 0; i < n; i++) /* staleness counts others' pushes alone */
            e->of[e->who[i]].known++;
    }
    bm_virtual_clock_resume(e->clock, e->who, n);
    for (int i = 0; i < n; i++)
        resume(e, e->who[i]);
    e->compute_s += bm_span_end(span);
}

/* ---- a block ------------------------------------------------------------- */

/* table <- the steps of all shares, on all ranks. */
static bm_status sum_lengths(bm_events *e)
{
    memset(e->table, 0, 2 * (size_t)e->workers * sizeof *e->table);
    for (int k = e->first; k < e->last; k++)
        e->table[k] = (double)e->task.steps(e->task.self, k);
    return bm_comm_sum(e->comm, e->table, (size_t)e->workers);
}

/* Workers with data fetch W at the start of a block. */
static void note_first_pulls(bm_events *e, const double *steps)
{
    for (int k = 0; k < e->workers; k++)
        if (e->policy->push != BM_ELASTIC && steps[k] > 0)
            note_pull(e);
}

static bm_status run_virtual(bm_events *e, bm_position at)
{
    bm_status status = BM_OK;

    bm_virtual_clock_block(e->clock, at, e->table);
    note_first_pulls(e, e->table);
    e->version = 0;
    for (int k = 0; k < e->workers; k++) {
        bm_period first = bm_virtual_clock_period(e->clock, k);

        e->of[k] = (progress){.since = (double)(first.to - first.from)};
    }
    for (int n = bm_virtual_clock_next(e->clock, e->who); n > 0;
         n = bm_virtual_clock_next(e->clock, e->who)) {
        for (int i = 0; i < n; i++)
            if (!e->of[e->who[i]].trained)
                train_all(e, &status);
        exchange(e, n, &status);
    }
    e->service.updates = e->version;
    e->service.seconds = bm_virtual_clock_now(e->clock);
    return status;
}

static bm_status run_realtime(bm_events *e)
{
    bm_span span = bm_span_begin("learn");
    int64_t steps = e->task.steps(e->task.self, e->first);
    bm_status status =
        bm_realtime_block(e->realtime, steps, e->rate, e->stale, &e->service);
    double seconds = bm_span_end(span);

    note_first_pulls(e, e->table);
    e->compute_s = bm_async_workers_of(e->async_workers, e->first)->seconds;
    e->exchange_s = seconds - e->compute_s;
    return status;
}

bm_status bm_events_block(bm_events *e, bm_position at, float rate,
                          double *compute_s, double *exchange_s)
{
    bm_status status = BM_OK;

    e->rate = rate;
    e->compute_s = e->exchange_s = 0;
    BM_TRY(sum_lengths(e));
    bm_service_begin(&e->service, e->stale, STALE * (size_t)e->workers + 1);
    bm_async_workers_begin(e->async_workers);
    status = e->realtime != NULL ? run_realtime(e) : run_virtual(e, at);
    bm_service_end(&e->service);
    bm_keep_first(&status, bm_async_workers_end(e->async_workers));
    *compute_s += e->compute_s;
    *exchange_s += e->exchange_s;
    return status;
}

const bm_async_worker *bm_events_worker(const bm_events *e, int worker)
{
    return bm_async_workers_of(e->async_workers, worker);
}

/* table <- the measured seconds of a step of each worker. */
static bm_status sum_times(bm_events *e)
{
    memset(e->table, 0, 2 * (size_t)e->workers * sizeof *e->table);
    for (int k = e->first; k < e->last; k++) {
        e->table[2 * k] = bm_async_workers_of(e->async_workers, k)->seconds;
        e->table[2 * k + 1] = bm_async_workers_of(e->async_workers, k)->steps;
    }
    BM_TRY(bm_comm_sum(e->comm, e->table, 2 * (size_t)e->workers));
    for (int k = 0; k < e->workers; k++)
        e->table[k] = e->table[2 * k] / e->table[2 * k + 1];
    return BM_OK;
}

bm_status bm_events_service(bm_events *e, const bm_service **out)
{
    *out = NULL;
    if (e == NULL)
        return BM_OK;
    BM_TRY(sum_times(e));
    e->service.step_s = e->table;
    e->service.workers = e->workers;
    *out = &e->service;
    return BM_OK;
}

size_t bm_events_state(bm_events *e, bm_state *out)
{
    return e != NULL ? bm_async_workers_state(e->async_workers, out) : 0;
}
