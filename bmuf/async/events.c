#include "bmuf/async/events.h"

#include "bmuf/async/realtime.h"
#include "bmuf/async/virtual_clock.h"
#include "core/span.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What all ranks know of a worker. */
typedef struct runner {
    bool learned; /* what it pushes next is computed */
    double known; /* updates of W that are in its model */
    double since; /* mini-batches since its last fetch, at its next push */
} runner;

struct bm_events {
    bm_comm *comm;         /* borrowed, as the next two */
    bm_strategy *strategy; /* its params->w is W */
    bm_local_state *local_state;
    bm_task task;
    bm_server_policy server_policy;
    int workers, first, last; /* hosted here: [first, last) */
    bm_async_workers *async_workers;
    bm_virtual_clock *virtual_clock; /* NULL: real */
    bm_realtime *realtime;           /* NULL: the clock is virtual */
    runner *of;                      /* [workers] */
    int *who;                        /* [workers]: those of an update */
    double *table;                   /* [2 workers]: for sums over ranks */
    double *stale;                   /* [STALE workers + 1] of the service */
    double version;
    float rate;
    double compute_s, exchange_s;
    bm_service service;
};

enum { STALE = 8 }; /* N times it: the most staleness that is told apart */

/* ---- open ---------------------------------------------------------------- */

static bm_status open_lists(bm_events *e)
{
    size_t n = (size_t)e->workers;

    e->of = calloc(n, sizeof *e->of);
    e->who = calloc(n, sizeof *e->who);
    e->table = calloc(2 * n, sizeof *e->table);
    e->stale = calloc(STALE * n + 1, sizeof *e->stale);
    if (e->of == NULL || e->who == NULL || e->table == NULL || e->stale == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d workers", e->workers);
    return BM_OK;
}

static bm_status open_clock(bm_events *e, const bm_config *config)
{
    bm_clock_settings set = {0};

    BM_TRY(bm_config_fill(config, "clock", bm_clock_options, &set));
    if (bm_clock_is_real(&set))
        return bm_realtime_open(&e->realtime, config, e->comm, e->strategy,
                                e->local_state, e->async_workers);
    return bm_virtual_clock_open(&e->virtual_clock, &set, &e->server_policy,
                                 e->workers, (uint64_t)e->strategy->job.seed);
}

bm_status bm_events_open(bm_events **out, const bm_config *config,
                         bm_comm *comm, bm_strategy *strategy,
                         bm_local_state *local_state, const bm_task *task,
                         int first, int last)
{
    bm_events *e = calloc(1, sizeof *e);
    bm_status status = BM_OK;

    if (e == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for events");
    e->comm = comm;
    e->strategy = strategy;
    e->local_state = local_state;
    e->task = *task;
    e->server_policy = strategy->traits.server_policy;
    e->workers = (int)strategy->job.workers;
    e->first = first;
    e->last = last;
    BM_TRY_DONE(open_lists(e));
    BM_TRY_DONE(bm_async_workers_open(&e->async_workers, config, strategy,
                                      local_state, task, first, last));
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
    bm_virtual_clock_close(e->virtual_clock);
    free(e->of);
    free(e->who);
    free(e->table);
    free(e->stale);
    free(e);
}

/* ---- what is counted ----------------------------------------------------- */

static double vector_bytes(const bm_events *e)
{
    return (double)(e->strategy->params->n * sizeof(float));
}

static double staleness(const bm_events *e, int worker)
{
    return e->version - e->of[worker].known;
}

static void note_push(bm_events *e, int worker)
{
    bm_service *t = &e->service;
    double tau = staleness(e, worker);

    e->stale[tau < (double)t->n_stale ? (size_t)tau : t->n_stale - 1]++;
    t->mean += tau;
    t->most = fmax(t->most, tau);
    t->pushes++;
    t->pushed += vector_bytes(e);
}

static void note_pull(bm_events *e)
{
    e->service.pulled += vector_bytes(e);
}

/* ---- an update ----------------------------------------------------------- */

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

/* Will it fetch W when the period at hand is over? */
static bool fetches(const bm_events *e, int worker)
{
    return e->server_policy.push != BM_ELASTIC &&
           e->of[worker].since >= (double)e->server_policy.fetch_every;
}

/* Whoever has data left, and has not learned since it met the server, does it
 * now. */
static void learn_all(bm_events *e, bm_status *own)
{
    bm_span span = bm_span_begin("learn");

    bm_async_workers_lend(e->async_workers);
    for (int k = 0; k < e->workers; k++) {
        bm_period at = bm_virtual_clock_period(e->virtual_clock, k);

        if (e->of[k].learned || at.from == at.to)
            continue;
        e->of[k].learned = true;
        if (is_here(e, k) && *own == BM_OK)
            *own = bm_async_workers_learn(e->async_workers, k, at, e->rate,
                                          !fetches(e, k));
    }
    bm_async_workers_return(e->async_workers);
    e->compute_s += bm_span_end(span);
}

/* The weight with which what a worker pushes takes part. */
static double prepare(bm_events *e, int worker)
{
    const bm_params *p = e->strategy->params;
    bm_async_worker *own = bm_async_workers_of(e->async_workers, worker);
    double scale =
        bm_server_policy_scale(&e->server_policy, staleness(e, worker));

    if (e->server_policy.push == BM_ELASTIC) {
        bm_async_workers_stretch(e->async_workers, worker);
        return 1;
    }
    if (scale != 1)
        bm_axpby(p->be, p->n, (float)scale, own->push, 0, own->push);
    return own->samples;
}

/* g <- the mean of what these n workers push. A rank that has failed brings
 * nothing, but comes. */
static void add_pushes(bm_events *e, int n, bm_status *own)
{
    for (int k = e->first; k < e->last; k++) {
        bm_async_worker *of = bm_async_workers_of(e->async_workers, k);
        bool takes_part = is_member(e, n, k) && *own == BM_OK, good = true;
        double weight = takes_part ? prepare(e, k) : 0;

        bm_keep_first(own, bm_exchange_add(e->strategy->exchange, k, of->push,
                                           NULL, weight, &good));
        of->bad_steps += !good;
        if (e->server_policy.push == BM_ELASTIC && takes_part && good)
            bm_async_workers_yield(e->async_workers, k);
    }
    bm_keep_first(own, bm_strategy_exchange(e->strategy));
}

/* W <- its next version. */
static void update(bm_events *e)
{
    bm_params *p = e->strategy->params;

    if (e->server_policy.push == BM_GRADIENT)
        bm_sgd_step(bm_local_state_of(e->local_state, e->first), e->rate);
    else
        bm_axpby(p->be, p->n, 1, p->g, 1, p->w);
}

/* The worker has pushed and goes on, perhaps with W, if it has data left. */
static void release(bm_events *e, int worker)
{
    runner *of = &e->of[worker];
    bm_period at = bm_virtual_clock_period(e->virtual_clock, worker);

    of->learned = false;
    if (at.from == at.to)
        return;
    if (e->server_policy.push == BM_ELASTIC)
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

/* The n workers in `who` meet the server. */
static void meet(bm_events *e, int n, bm_status *own)
{
    bm_span span = bm_span_begin("exchange");

    for (int i = 0; i < n; i++) {
        note_push(e, e->who[i]);
        if (e->server_policy.push == BM_ELASTIC)
            note_pull(e);
    }
    add_pushes(e, n, own);
    e->exchange_s += bm_span_end(span);
    span = bm_span_begin("update");
    if (e->strategy->update.weight > 0) {
        update(e);
        e->version++;
        for (int i = 0; i < n; i++)
            e->of[e->who[i]].known++;
    }
    bm_virtual_clock_go_on(e->virtual_clock, e->who, n);
    for (int i = 0; i < n; i++)
        release(e, e->who[i]);
    e->compute_s += bm_span_end(span);
}

/* ---- a block ------------------------------------------------------------- */

/* The lengths of all shares, on all ranks. */
static bm_status share_lengths(bm_events *e)
{
    memset(e->table, 0, 2 * (size_t)e->workers * sizeof *e->table);
    for (int k = e->first; k < e->last; k++)
        e->table[k] = (double)e->task.steps(e->task.self, k);
    return bm_comm_sum(e->comm, e->table, (size_t)e->workers);
}

static void begin_service(bm_events *e)
{
    size_t n_stale = STALE * (size_t)e->workers + 1;

    memset(e->stale, 0, n_stale * sizeof *e->stale);
    e->service = (bm_service){.stale = e->stale, .n_stale = n_stale};
}

/* Those that have data begin the block with a model. */
static void note_first_pulls(bm_events *e, const double *steps)
{
    for (int k = 0; k < e->workers; k++)
        if (e->server_policy.push != BM_ELASTIC && steps[k] > 0)
            note_pull(e);
}

static bm_status run_virtual(bm_events *e, bm_position at)
{
    bm_status status = BM_OK;

    bm_virtual_clock_block(e->virtual_clock, at, e->table);
    note_first_pulls(e, e->table);
    e->version = 0;
    for (int k = 0; k < e->workers; k++) {
        bm_period first = bm_virtual_clock_period(e->virtual_clock, k);

        e->of[k] = (runner){.since = (double)(first.to - first.from)};
    }
    for (int n = bm_virtual_clock_next(e->virtual_clock, e->who); n > 0;
         n = bm_virtual_clock_next(e->virtual_clock, e->who)) {
        for (int i = 0; i < n; i++)
            if (!e->of[e->who[i]].learned)
                learn_all(e, &status);
        meet(e, n, &status);
    }
    e->service.updates = e->version;
    e->service.seconds = bm_virtual_clock_now(e->virtual_clock);
    return status;
}

static bm_status run_real(bm_events *e)
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
    BM_TRY(share_lengths(e));
    begin_service(e);
    bm_async_workers_begin(e->async_workers);
    status = e->realtime != NULL ? run_real(e) : run_virtual(e, at);
    bm_keep_first(&status, bm_async_workers_end(e->async_workers));
    *compute_s += e->compute_s;
    *exchange_s += e->exchange_s;
    return status;
}

const bm_async_worker *bm_events_worker(const bm_events *e, int worker)
{
    return bm_async_workers_of(e->async_workers, worker);
}

/* What a mini-batch took, of each worker. */
static bm_status share_times(bm_events *e)
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
    bm_service *t = NULL;

    *out = NULL;
    if (e == NULL)
        return BM_OK;
    BM_TRY(share_times(e));
    t = &e->service;
    t->mean /= t->pushes; /* NAN of none */
    t->step_s = e->table;
    t->workers = e->workers;
    *out = t;
    return BM_OK;
}

size_t bm_events_state(bm_events *e, bm_state *out)
{
    return e != NULL ? bm_async_workers_state(e->async_workers, out) : 0;
}
