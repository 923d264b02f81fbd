/* local_state.c - one bm_sgd for each worker hosted here, or one for all. */
#include "bmuf/local_state.h"

#include "sgd/update.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How a worker's share ended. */
typedef struct outcome {
    double weight;
    bool left_out;
} outcome;

struct bm_local_state {
    bm_strategy *strategy; /* borrowed */
    bm_local_policy local;
    bool central;    /* one update, the same on all ranks */
    int first, last; /* hosted here: [first, last) */
    bm_sgd **sgd;    /* [n]: one for each worker hosted here, or for all */
    int n;
    outcome *outcome; /* [last - first] */
    double began;     /* average, extrapolate: t at the start of the block */

    /* extrapolate */
    double rho;
    double beta[BM_SGD_VECTORS];
    float *before[BM_SGD_VECTORS]; /* m0, v0 of the block, on the host */
    float *mean;                   /* mbar: room for one vector */
};

/* Does a block end with the mean of all workers' states? */
static bool averages(const bm_local_state *m)
{
    return m->local == BM_LOCAL_AVERAGE || m->local == BM_LOCAL_EXTRAPOLATE;
}

static bm_status open_extrapolation(bm_local_state *m,
                                    const bm_sgd_settings *set)
{
    const bm_strategy *s = m->strategy;
    size_t n = s->params->n;

    if (m->local != BM_LOCAL_EXTRAPOLATE)
        return BM_OK;
    if (!s->traits.filtered || !bm_update_of(set)->extrapolates)
        return BM_FAIL(BM_ERR_CONFIG,
                       "sgd.local_state = extrapolate is for sgd.update = "
                       "adamw and a strategy that filters, not for %s and %s; "
                       "set sgd.local_state = average",
                       set->update, s->ops->name);
    m->beta[0] = set->beta1;
    m->beta[1] = set->beta2;
    m->mean = malloc(n * sizeof *m->mean);
    for (int i = 0; i < BM_SGD_VECTORS; i++)
        m->before[i] = calloc(n, sizeof *m->before[i]);
    if (m->mean == NULL || m->before[0] == NULL || m->before[1] == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for moments");
    return BM_OK;
}

/* How many updates there are, and what becomes of their state. */
typedef struct arrangement {
    bool central; /* one update, the same on all ranks */
    bool each;    /* one for each worker; else one a rank */
    bm_local_policy policy;
} arrangement;

static arrangement arrange(const bm_strategy_ops *ops, const bm_traits *traits,
                           const bm_sgd_settings *set)
{
    bm_push push = traits->server_policy.push;
    bool events = ops->per == BM_EVENT && push != BM_GRADIENT;
    arrangement a = {.policy = bm_sgd_local_state(set)};

    a.central = ops->per == BM_STEP || (ops->per == BM_EVENT && !events);
    if (a.central || (events && push == BM_ELASTIC))
        a.policy = BM_LOCAL_KEEP; /* no model is replaced at a block's end */
    a.each = events || (!a.central && a.policy != BM_LOCAL_RESET);
    return a;
}

static bm_status decide(bm_local_state *m, const bm_sgd_settings *set)
{
    const bm_strategy *s = m->strategy;
    arrangement a = arrange(s->ops, &s->traits, set);

    m->central = a.central;
    m->local = a.policy;
    m->n = a.each ? m->last - m->first : 1;
    if (averages(m) && s->ops->per == BM_EVENT)
        return BM_FAIL(BM_ERR_CONFIG,
                       "sgd.local_state = %s is for strategies that exchange "
                       "by blocks, not for %s; set keep or reset",
                       set->local_state, s->ops->name);
    if (averages(m) && s->exchange == NULL)
        return BM_FAIL(BM_ERR_CONFIG,
                       "sgd.local_state = %s is for models that are exchanged "
                       "as a whole where a block ends, not for block.fragments "
                       "and block.overlap; set keep or reset",
                       set->local_state);
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
    return open_extrapolation(m, &set);
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
                             bool left_out, double *steps)
{
    double t = 0;

    m->outcome[worker - m->first] = (outcome){weight, left_out};
    if (!averages(m))
        return BM_OK;
    BM_TRY(bm_sgd_count(bm_local_state_of(m, worker), &t));
    *steps = t - m->began;
    return BM_OK;
}

/* All workers hosted here continue with the state of the first of them. */
static void copy_first(bm_local_state *m)
{
    for (int i = 1; i < m->n; i++)
        bm_sgd_copy(m->sgd[i], m->sgd[0]);
}

/* x = mbar moves on by `ahead` updates. Every rank computes the whole vector.
 */
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

/* The vector of all workers <- their mean, weighted as their models are. */
static bm_status average_vector(bm_local_state *m, size_t vector, double tau,
                                double ahead)
{
    bm_exchange *e = m->strategy->exchange;
    float *x[BM_SGD_VECTORS];

    for (int k = m->first; k < m->last; k++) {
        double samples = m->outcome[k - m->first].weight;
        bool good = true;
        (void)bm_sgd_vectors(bm_local_state_of(m, k), x);
        BM_TRY(bm_exchange_add(e, k, x[vector], NULL,
                               bm_mean_weight(&m->strategy->traits, samples),
                               &good));
    }
    (void)bm_sgd_vectors(m->sgd[0], x);
    BM_TRY(bm_exchange_mean(e, x[vector]));
    if (m->local == BM_LOCAL_EXTRAPOLATE && tau > 0)
        return extrapolate(m, vector, tau, ahead, x[vector]);
    return BM_OK;
}

/* Beyond 2^24 a float has no room for one update more: t stays below, with room for
 * those of a block. Both corrections of Adam are 1 there. */
static const double most_updates = 0x1p23;

static bm_status average(bm_local_state *m, double tau)
{
    float *x[BM_SGD_VECTORS];
    size_t n = bm_sgd_vectors(m->sgd[0], x);
    double ahead = 0, eta = m->strategy->traits.filter.momentum;

    if (m->local == BM_LOCAL_EXTRAPOLATE && tau > 0) {
        m->rho = eta * m->rho + tau;
        ahead = eta * m->rho;
    }
    for (size_t i = 0; i < n; i++)
        BM_TRY(average_vector(m, i, tau, ahead));
    bm_sgd_set_count(m->sgd[0], fmin(m->began + tau + ahead, most_updates));
    copy_first(m);
    return bm_sgd_count(m->sgd[0], &m->began);
}

/* A worker that is left out starts from zero: its momentum could make it
 * diverge again. */
static void reset_left_out(bm_local_state *m)
{
    for (int k = m->first; k < m->last; k++)
        if (m->outcome[k - m->first].left_out)
            bm_sgd_reset(bm_local_state_of(m, k));
}

bm_status bm_local_state_exchange(bm_local_state *m, double tau)
{
    if (averages(m)) /* no-op in a block without data */
        return m->strategy->update.weight > 0 ? average(m, tau) : BM_OK;
    if (m->local == BM_LOCAL_KEEP)
        reset_left_out(m);
    return BM_OK;
}

bm_status bm_local_state_take(bm_local_state *m, const bm_local_state *from)
{
    for (int i = 0; i < m->n; i++)
        bm_sgd_copy(m->sgd[i], from->sgd[0]);
    return bm_local_state_resume(m, 0);
}

size_t bm_local_state_state(bm_local_state *m, bm_state *out)
{
    size_t n = 0;

    if (averages(m) || m->central)
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

    if (!averages(m))
        return BM_OK;
    copy_first(m);
    m->rho = rho;
    (void)bm_sgd_vectors(m->sgd[0], x);
    if (m->local == BM_LOCAL_EXTRAPOLATE)
        for (int i = 0; i < BM_SGD_VECTORS; i++)
            bm_get(p->be, m->before[i], x[i], p->n);
    return bm_sgd_count(m->sgd[0], &m->began);
}

void bm_local_state_footprint(const bm_strategy_ops *ops,
                              const bm_traits *traits,
                              const bm_sgd_settings *set, bm_hosting on,
                              bm_footprint *sum)
{
    arrangement a = arrange(ops, traits, set);
    double vectors = 0, memory = bm_sgd_memory(set, &vectors);

    sum->memory += memory * (a.each ? on.hosted : 1);
    if (a.policy == BM_LOCAL_EXTRAPOLATE)
        sum->memory += vectors + 1; /* m0 and v0 of the block, and a mean */
    if (a.central ||
        (a.policy != BM_LOCAL_RESET && a.policy != BM_LOCAL_KEEP)) {
        sum->checkpoint += vectors;
        sum->copied += vectors;
    } else if (a.policy == BM_LOCAL_KEEP) {
        sum->checkpoint += vectors * on.workers;
        sum->copied += vectors * on.hosted;
    }
}
