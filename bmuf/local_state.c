#include "bmuf/local_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What became of a worker's share. */
typedef struct outcome {
    double weight;
    bool astray;
} outcome;

struct bm_local_state {
    bm_strategy *strategy; /* borrowed */
    bm_local_policy local;
    bool central;    /* there is one update, the same on all ranks */
    int first, last; /* hosted here: [first, last) */
    bm_sgd **sgd;    /* [n]: one for each worker hosted here, or for all */
    int n;
    outcome *outcome; /* [last - first] */
    double began;     /* average, extrapolate: t at the start of the block */

    /* extrapolate */
    double eta, rho;
    double beta[BM_SGD_VECTORS];
    float *before[BM_SGD_VECTORS]; /* at the start of the block, on the host */
    float *mean;                   /* room for one of them */
};

static bool shares(const bm_local_state *m)
{
    return m->local == BM_LOCAL_AVERAGE || m->local == BM_LOCAL_EXTRAPOLATE;
}

static bm_status open_extrapolation(bm_local_state *m, const bm_config *config,
                                    const bm_sgd_settings *set)
{
    const bm_strategy *s = m->strategy;
    size_t n = s->params->n;
    bm_filter filter = {0};
    bool filtered = false;

    if (m->local != BM_LOCAL_EXTRAPOLATE)
        return BM_OK;
    BM_TRY(bm_strategy_filter(s->ops, config, (int)s->job.workers, &filter,
                              &filtered));
    if (!filtered || !bm_sgd_is_adam(set))
        return BM_FAIL(BM_ERR_CONFIG,
                       "sgd.local_state = extrapolate is for adamw and a "
                       "strategy that filters, not for %s and %s",
                       set->update, s->ops->name);
    m->eta = filter.momentum;
    m->beta[0] = set->beta1;
    m->beta[1] = set->beta2;
    m->mean = malloc(n * sizeof *m->mean);
    for (int i = 0; i < BM_SGD_VECTORS; i++)
        m->before[i] = calloc(n, sizeof *m->before[i]);
    if (m->mean == NULL || m->before[0] == NULL || m->before[1] == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for moments");
    return BM_OK;
}

/* Whose the updates are, and what becomes of them. */
static bm_status decide(bm_local_state *m, const bm_sgd_settings *set)
{
    bm_unit unit = m->strategy->ops->unit;
    bm_push push = m->strategy->server_policy.push;
    bool events = unit == BM_EVENT && push != BM_GRADIENT;

    m->central = unit == BM_STEP || (unit == BM_EVENT && !events);
    m->local = bm_sgd_local_state(set);
    if (m->central || (events && push == BM_ELASTIC))
        m->local = BM_LOCAL_KEEP; /* no model is replaced at a block's end */
    if (events && shares(m))
        return BM_FAIL(BM_ERR_CONFIG,
                       "sgd.local_state = %s is for strategies that exchange "
                       "by blocks, not for %s",
                       set->local_state, m->strategy->ops->name);
    if (shares(m) && m->strategy->n_parts > 0)
        return BM_FAIL(BM_ERR_CONFIG,
                       "sgd.local_state = %s is for models that are exchanged "
                       "as a whole where a block ends, not for block.fragments "
                       "and block.overlap",
                       set->local_state);
    m->n = events || (!m->central && m->local != BM_LOCAL_RESET)
               ? m->last - m->first
               : 1;
    return BM_OK;
}

static bm_status open_updates(bm_local_state *m, const bm_config *config)
{
    bm_sgd_settings set = {0};

    BM_TRY(bm_config_fill(config, "sgd", bm_sgd_options, &set));
    BM_TRY(decide(m, &set));
    m->sgd = calloc((size_t)m->n + 1, sizeof(bm_sgd *));
    m->outcome = calloc((size_t)(m->last - m->first) + 1, sizeof *m->outcome);
    if (m->sgd == NULL || m->outcome == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d updates", m->n);
    for (int i = 0; i < m->n; i++)
        BM_TRY(bm_sgd_new(&m->sgd[i], &set, m->strategy->params));
    return open_extrapolation(m, config, &set);
}

bm_status bm_local_state_open(bm_local_state **out, const bm_config *config,
                              bm_strategy *strategy, int first, int last)
{
    bm_local_state *m = calloc(1, sizeof *m);
    bm_status status = BM_OK;

    if (m == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for updates");
    m->strategy = strategy;
    m->first = first;
    m->last = last;
    BM_TRY_DONE(open_updates(m, config));
    *out = m;
    m = NULL;
done:
    bm_local_state_close(m);
    return status;
}

void bm_local_state_close(bm_local_state *m)
{
    if (m == NULL)
        return;
    for (int i = 0; m->sgd != NULL && i < m->n; i++)
        bm_sgd_free(m->sgd[i]);
    for (int i = 0; i < BM_SGD_VECTORS; i++)
        free(m->before[i]);
    free(m->mean);
    free((void *)m->sgd);
    free(m->outcome);
    free(m);
}

bm_sgd *bm_local_state_of(bm_local_state *m, int worker)
{
    return m->sgd[m->n == 1 ? 0 : worker - m->first];
}

bm_sgd *bm_local_state_begin(bm_local_state *m, int worker)
{
    bm_sgd *sgd = bm_local_state_of(m, worker);

    if (m->local == BM_LOCAL_RESET)
        bm_sgd_reset(sgd);
    return sgd;
}

bm_status bm_local_state_end(bm_local_state *m, int worker, double weight,
                             bool astray, double *steps)
{
    double t = 0;

    m->outcome[worker - m->first] = (outcome){weight, astray};
    if (!shares(m))
        return BM_OK;
    BM_TRY(bm_sgd_count(bm_local_state_of(m, worker), &t));
    *steps = t - m->began;
    return BM_OK;
}

/* All workers hosted here go on as the first of them. */
static void spread(bm_local_state *m)
{
    for (int i = 1; i < m->n; i++)
        bm_sgd_copy(m->sgd[i], m->sgd[0]);
}

/* The mean x is carried on by `ahead` updates. Every rank does all of it. */
static bm_status extrapolate(bm_local_state *m, size_t vector, double tau,
                             double ahead, float *x)
{
    const bm_params *p = m->strategy->params;
    double past = pow(m->beta[vector], tau), on = pow(m->beta[vector], ahead);
    double of_before = past * (on - 1) / (1 - past);
    double of_mean = (1 - past * on) / (1 - past);
    float *before = m->before[vector], *mean = m->mean;

    bm_get(p->be, mean, x, p->n);
    BM_TRY(bm_sync(p->be));
    for (size_t i = 0; i < p->n; i++) {
        double on_it = of_before * before[i] + of_mean * mean[i];
        before[i] = (float)(vector == 0 ? on_it : fmax(on_it, 0));
    }
    bm_put(p->be, x, before, p->n);
    return bm_sync(p->be);
}

/* A vector of all workers becomes the mean of theirs, as their models do. */
static bm_status share_vector(bm_local_state *m, size_t vector, double tau,
                              double ahead)
{
    bm_exchange *e = m->strategy->exchange;
    float *x[BM_SGD_VECTORS];

    for (int k = m->first; k < m->last; k++) {
        bool good = true;
        (void)bm_sgd_vectors(bm_local_state_of(m, k), x);
        BM_TRY(bm_exchange_add(e, k, x[vector], NULL,
                               m->outcome[k - m->first].weight, &good));
    }
    (void)bm_sgd_vectors(m->sgd[0], x);
    BM_TRY(bm_exchange_mean(e, x[vector]));
    if (m->local == BM_LOCAL_EXTRAPOLATE && tau > 0)
        return extrapolate(m, vector, tau, ahead, x[vector]);
    return BM_OK;
}

static bm_status share(bm_local_state *m, double tau)
{
    float *x[BM_SGD_VECTORS];
    size_t n = bm_sgd_vectors(m->sgd[0], x);
    double ahead = 0;

    if (m->local == BM_LOCAL_EXTRAPOLATE && tau > 0) {
        m->rho = m->eta * m->rho + tau;
        ahead = m->eta * m->rho;
    }
    for (size_t i = 0; i < n; i++)
        BM_TRY(share_vector(m, i, tau, ahead));
    bm_sgd_set_count(m->sgd[0], m->began + tau + ahead);
    spread(m);
    return bm_sgd_count(m->sgd[0], &m->began);
}

/* What went astray goes on from rest: its momentum would lead astray again. */
static void stop_astray(bm_local_state *m)
{
    for (int k = m->first; k < m->last; k++)
        if (m->outcome[k - m->first].astray)
            bm_sgd_reset(bm_local_state_of(m, k));
}

bm_status bm_local_state_exchange(bm_local_state *m, double tau)
{
    if (shares(m)) /* without data nothing is done */
        return m->strategy->update.weight > 0 ? share(m, tau) : BM_OK;
    if (m->local == BM_LOCAL_KEEP)
        stop_astray(m);
    return BM_OK;
}

bm_status bm_local_state_take(bm_local_state *m, const bm_local_state *from)
{
    for (int i = 0; i < m->n; i++)
        bm_sgd_copy(m->sgd[i], from->sgd[0]);
    return bm_local_state_resume(m, 0);
}

size_t bm_local_state_states(const bm_local_state *m)
{
    return (size_t)m->n * BM_SGD_STATES;
}

size_t bm_local_state_state(bm_local_state *m, bm_state *out)
{
    size_t n = 0;

    if (shares(m) || m->central)
        return bm_sgd_state(m->sgd[0], -1, out);
    if (m->local == BM_LOCAL_KEEP)
        for (int i = 0; i < m->n; i++)
            n += bm_sgd_state(m->sgd[i], m->first + i, out + n);
    return n;
}

double bm_local_state_rho(const bm_local_state *m)
{
    return m->rho;
}

bm_status bm_local_state_resume(bm_local_state *m, double rho)
{
    const bm_params *p = m->strategy->params;
    float *x[BM_SGD_VECTORS];

    if (!shares(m))
        return BM_OK;
    spread(m);
    m->rho = rho;
    (void)bm_sgd_vectors(m->sgd[0], x);
    if (m->local == BM_LOCAL_EXTRAPOLATE)
        for (int i = 0; i < BM_SGD_VECTORS; i++)
            bm_get(p->be, m->before[i], x[i], p->n);
    return bm_sgd_count(m->sgd[0], &m->began);
}
