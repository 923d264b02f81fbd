#include "bmuf/async/async_worker.h"

#include "core/clock.h"

#include <stdio.h>
#include <stdlib.h>

struct bm_async_workers {
    bm_params *params;           /* borrowed */
    bm_local_state *local_state; /* borrowed; of the workers' own updates */
    bm_task task;
    const bm_server_policy *policy; /* borrowed; the strategy's */
    int first, last;                /* [first, last) */
    bm_sgd *plain;       /* BM_GRADIENT with periods, see open_plain; or NULL */
    float *saved;        /* [n]: W, while a worker trains */
    bm_async_worker *of; /* [last - first] */
};

bm_async_worker *bm_async_workers_of(const bm_async_workers *g, int worker)
{
    return &g->of[worker - g->first];
}

static void copy(const bm_async_workers *g, const float *from, float *to)
{
    bm_axpby(g->params->be, g->params->n, 1, from, 0, to);
}

static bool own_updates(const bm_async_workers *g)
{
    return g->policy->push != BM_GRADIENT;
}

/* The plain SGD by which workers that push gradients move between fetches. */
static bm_status open_plain(bm_async_workers *g, const bm_config *config)
{
    bm_sgd_settings set = {0};

    if (own_updates(g) || g->policy->fetch_every == 1)
        return BM_OK;
    BM_TRY(bm_config_fill(config, "sgd", bm_sgd_options, &set));
    set.update = "momentum";
    set.momentum = 0;
    set.nesterov = false;
    return bm_sgd_new(&g->plain, &set, g->params);
}

static bm_status open_vectors(bm_async_workers *g)
{
    bm_params *p = g->params;

    g->of = calloc((size_t)(g->last - g->first) + 1, sizeof *g->of);
    if (g->of == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for asynchronous workers");
    BM_TRY(bm_alloc(p->be, p->n, &g->saved));
    for (int k = g->first; k < g->last; k++) {
        BM_TRY(bm_alloc_idle(p->be, p->n, &bm_async_workers_of(g, k)->w));
        BM_TRY(bm_alloc_idle(p->be, p->n, &bm_async_workers_of(g, k)->push));
        bm_async_workers_fetch(g, k);
    }
    return bm_sync(p->be);
}

bm_status bm_async_workers_open(bm_async_workers **out, const bm_config *config,
                                bm_strategy *strategy,
                                bm_local_state *local_state,
                                const bm_task *task, int first, int last)
{
    bm_async_workers *g = calloc(1, sizeof *g);
    bm_status status = BM_OK;

    if (g == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for asynchronous workers");
    g->params = strategy->params;
    g->local_state = local_state;
    g->task = *task;
    g->policy = &strategy->traits.server_policy;
    g->first = first;
    g->last = last;
    BM_TRY_DONE(open_vectors(g));
    BM_TRY_DONE(open_plain(g, config));
    *out = g;
    g = NULL;
done:
    bm_async_workers_close(g);
    return status;
}

void bm_async_workers_close(bm_async_workers *g)
{
    if (g == NULL)
        return;
    for (int k = g->first; g->of != NULL && k < g->last; k++) {
        bm_free(g->params->be, bm_async_workers_of(g, k)->w);
        bm_free(g->params->be, bm_async_workers_of(g, k)->push);
    }
    bm_free(g->params->be, g->saved);
    bm_sgd_free(g->plain);
    free(g->of);
    free(g);
}

void bm_async_workers_begin(bm_async_workers *g)
{
    for (int k = g->first; k < g->last; k++) {
        bm_async_worker *own = bm_async_workers_of(g, k);

        *own = (bm_async_worker){.w = own->w, .push = own->push};
        if (g->policy->push != BM_ELASTIC)
            bm_async_workers_fetch(g, k);
        if (own_updates(g))
            (void)bm_local_state_begin(g->local_state, k);
    }
}

void bm_async_workers_fetch(bm_async_workers *g, int worker)
{
    copy(g, g->params->w, bm_async_workers_of(g, worker)->w);
}

void bm_async_workers_save(bm_async_workers *g)
{
    copy(g, g->params->w, g->saved);
}

void bm_async_workers_restore(bm_async_workers *g)
{
    copy(g, g->saved, g->params->w);
}

static bm_status find_gradient(bm_async_workers *g, int worker, int64_t step,
                               double *n)
{
    bm_async_worker *own = bm_async_workers_of(g, worker);

    BM_TRY(g->task.gradient(g->task.self, g->params, worker, step, n));
    own->samples += *n;
    own->seen += *n;
    return BM_OK;
}

/* push <- the sum of gradients, while the model moves; its last move is skipped
 * if a fetch would overwrite it. */
static bm_status train_by_gradient(bm_async_workers *g, int worker,
                                   bm_period at, float rate, bool keeps_model)
{
    bm_params *p = g->params;
    bm_async_worker *own = bm_async_workers_of(g, worker);

    for (int64_t i = at.from; i < at.to; i++) {
        bool first = own->samples == 0;
        double n = 0;

        BM_TRY(find_gradient(g, worker, i, &n));
        if (n == 0)
            continue;
        bm_axpby(p->be, p->n, 1, p->g, first ? 0 : 1, own->push);
        if (i + 1 < at.to || keeps_model)
            bm_sgd_step(g->plain, rate);
    }
    return BM_OK;
}

/* Trains by the worker's own update; push <- the change of its model. */
static bm_status train_by_update(bm_async_workers *g, int worker, bm_period at,
                                 float rate)
{
    bm_params *p = g->params;
    bm_async_worker *own = bm_async_workers_of(g, worker);
    bm_sgd *sgd = bm_local_state_of(g->local_state, worker);

    for (int64_t i = at.from; i < at.to; i++) {
        double n = 0;

        BM_TRY(find_gradient(g, worker, i, &n));
        if (n > 0)
            bm_sgd_step(sgd, rate);
    }
    copy(g, p->w, own->push);
    bm_axpby(p->be, p->n, -1, own->w, 1, own->push);
    return BM_OK;
}

bm_status bm_async_workers_train(bm_async_workers *g, int worker, bm_period at,
                                 float rate, bool keeps_model)
{
    bm_async_worker *own = bm_async_workers_of(g, worker);
    double since = bm_clock();

    own->samples = 0;
    copy(g, own->w, g->params->w);
    if (own_updates(g))
        BM_TRY(train_by_update(g, worker, at, rate));
    else
        BM_TRY(train_by_gradient(g, worker, at, rate, keeps_model));
    copy(g, g->params->w, own->w);
    BM_TRY(bm_sync(g->params->be));
    own->seconds += bm_clock() - since;
    own->steps += (double)(at.to - at.from);
    return BM_OK;
}

void bm_async_workers_elastic_push(bm_async_workers *g, int worker)
{
    bm_params *p = g->params;
    bm_async_worker *own = bm_async_workers_of(g, worker);
    float alpha = (float)g->policy->alpha;

    bm_axpby(p->be, p->n, alpha, own->w, 0, own->push);
    bm_axpby(p->be, p->n, -alpha, p->w, 1, own->push);
}

void bm_async_workers_elastic_move(bm_async_workers *g, int worker, bool good)
{
    bm_async_worker *own = bm_async_workers_of(g, worker);

    if (good) {
        bm_axpby(g->params->be, g->params->n, -1, own->push, 1, own->w);
        return;
    }
    bm_async_workers_fetch(g, worker);
    bm_sgd_reset(bm_local_state_of(g->local_state, worker));
}

bm_status bm_async_workers_end(bm_async_workers *g)
{
    for (int k = g->first; own_updates(g) && k < g->last; k++) {
        double n = 0;

        BM_TRY(bm_sgd_skipped(bm_local_state_of(g->local_state, k), &n));
        bm_async_workers_of(g, k)->bad_steps += n;
    }
    return BM_OK;
}

size_t bm_async_workers_state(bm_async_workers *g, bm_state *out)
{
    const bm_params *p = g->params;
    size_t n = 0;

    for (int k = g->first; g->policy->push == BM_ELASTIC && k < g->last; k++) {
        out[n] =
            (bm_state){"", p->be, bm_async_workers_of(g, k)->w, 0, p->n, p->n};
        snprintf(out[n].name, sizeof out[n].name, "worker.%d", k);
        n++;
    }
    return n;
}

void bm_async_workers_footprint(const bm_server_policy *server_policy,
                                bm_hosting on, bm_footprint *sum)
{
    sum->memory += 2 * on.hosted + 1; /* models, pushes; W while they learn */
    if (server_policy->push == BM_ELASTIC) {
        sum->checkpoint += on.workers;
        sum->copied += on.hosted;
    }
}
