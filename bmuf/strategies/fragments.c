/*
 * fragments.c - a strategy made of one strategy per fragment. It has hooks of
 * its own and no exchange; each inner strategy exchanges its fragment.
 *
 * A late exchange of a device runs on a backend beside that of the training: the
 * inner strategies have one fragment's room there, models are copied to it and
 * start from it. The comm thread uses that backend while an exchange is under
 * way, else the calling thread does.
 */
#include "bmuf/strategies/fragments.h"

#include "bmuf/block_settings.h"
#include "comm/agreed_alloc.h"
#include "comm/comm_thread.h"
#include "core/finite.h"
#include "core/trace/span.h"
#include "sgd/layer_rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fragment {
    size_t offset;
    bm_params params; /* of the fragment; w is its place in the params of the
                         training, or scratch on the second backend */
    bm_layer_rate *layer_rates; /* of params */
    bm_strategy *strategy;
} fragment;

/* A worker hosted here. */
typedef struct own_model {
    float *w;    /* [n] on the backend; x_k - b_k of a late fragment */
    float *seen; /* [fragments]: samples since its last exchange */
    double samples;
    bool left_out; /* of this block */
} own_model;

/* Fields of a bm_update; what stands for NAN in a checkpoint: no norm and no
 * cosine is -2. */
enum { FIELDS = 4, NOT_DEFINED = -2 };

typedef struct fragments {
    fragment *of; /* [n] */
    size_t n;
    own_model *models; /* [last - first] */
    int first, last;
    float *rates;           /* [n]: of the last exchange; 0: there was none */
    float *non_finite;      /* on a device: room for a flag */
    bm_comm_thread *thread; /* NULL: no exchange is late */
    bm_backend *beside;     /* of late exchanges; NULL: that of the training */
    float *room;            /* scratch on `beside`, for the longest fragment */
    fragment *under_way;    /* on the thread; NULL: none */
    float last_update[FIELDS]; /* bm_update of the last late exchange, which the
                                  next block reports: a resumed run reports it,
                                  too */
    bool changed; /* a late exchange has changed W, which settle reports */
    bool settings_known; /* eta and zeta are those of the run */
    bool begins;         /* with Delta of another run, perhaps */
    bm_status failed; /* the first failure, to be returned by the exchange that
                          notices it, or the next one */
    char error[512];
} fragments;

/* ---- schedule ------------------------------------------------------------ */

static own_model *model_of(const fragments *f, int worker)
{
    return &f->models[worker - f->first];
}

/* The fragment whose exchange block t ends with. */
static fragment *fragment_of(const fragments *f, int64_t t)
{
    return &f->of[(size_t)t % f->n];
}

/* The fragment that workers get the late update of at the end of this block;
 * n: none. */
static size_t late_fragment(const bm_strategy *s)
{
    const fragments *f = s->self;
    int64_t t = s->block;

    return f->thread != NULL && t > 0 ? (size_t)(t - 1) % f->n : f->n;
}

/* ---- late exchanges ------------------------------------------------------ */

static bm_status run_exchange(void *self)
{
    fragments *f = self;
    bm_span span = bm_span_begin("exchange");
    bm_status status = BM_OK;

    bm_backend_take(f->beside);
    status = bm_strategy_update(f->under_way->strategy);
    (void)bm_span_end(span);
    return status;
}

/* As floats for checkpoints, which may not hold NAN. */
static void write_update(const bm_update *u, float out[FIELDS])
{
    const double all[FIELDS] = {u->weight, u->g_norm, u->delta_norm, u->cos};

    for (int i = 0; i < FIELDS; i++)
        out[i] = isfinite(all[i]) ? (float)all[i] : NOT_DEFINED;
}

static double read_field(const fragments *f, int i)
{
    return f->last_update[i] == NOT_DEFINED ? NAN : f->last_update[i];
}

static void note_failure(fragments *f, bm_status status)
{
    if (status == BM_OK || f->failed != BM_OK)
        return;
    f->failed = status;
    snprintf(f->error, sizeof f->error, "%s", bm_last_message());
}

static bm_status failure(const fragments *f)
{
    return f->failed == BM_OK ? BM_OK : BM_FAIL(f->failed, "%s", f->error);
}

static void wait_for_exchange(fragments *f)
{
    bm_status status = BM_OK;
    const bm_update *update = NULL;
    bm_span span;

    if (f->under_way == NULL)
        return;
    span = bm_span_begin("wait");
    status = bm_comm_thread_wait_all(f->thread);
    (void)bm_span_end(span);
    bm_backend_take(f->beside);
    update = &f->under_way->strategy->update;
    write_update(update, f->last_update);
    f->under_way = NULL;
    f->changed = status == BM_OK && update->weight > 0;
    note_failure(f, status);
}

static bool settle(bm_strategy *s)
{
    fragments *f = s->self;
    bool changed = false;

    wait_for_exchange(f);
    changed = f->changed;
    f->changed = false;
    return changed;
}

/* Waits, and returns the failure of any late exchange so far. */
static bm_status finish_late(bm_strategy *s)
{
    fragments *f = s->self;

    wait_for_exchange(f);
    return failure(f);
}

/* ---- a block ------------------------------------------------------------- */

static void begin(bm_strategy *s, int worker, const double *samples)
{
    const fragments *f = s->self;
    bm_params *p = s->params;

    (void)samples;
    bm_axpby(p->be, p->n, 1, model_of(f, worker)->w, 0, p->w);
}

/* Are all numbers of w finite? On a device g, which is no longer needed, is
 * scratch. */
static bm_status check_finite(const bm_strategy *s, bool *finite)
{
    const fragments *f = s->self;
    const bm_params *p = s->params;
    float non_finite = 0;

    if (bm_on_host(p->be)) {
        BM_TRY(bm_sync(p->be));
        *finite = bm_all_finite(p->w, p->n);
        return BM_OK;
    }
    bm_difference(p->be, p->n, p->w, NULL, p->g, f->non_finite);
    bm_get(p->be, &non_finite, f->non_finite, 1);
    BM_TRY(bm_sync(p->be));
    *finite = non_finite == 0;
    return BM_OK;
}

/* Keeps x_k and, of the fragment whose exchange is under way, x_k - b_k. */
static bm_status worker_end(bm_strategy *s, int worker, double samples,
                            bool *good)
{
    const bm_params *p = s->params;
    const fragments *f = s->self;
    own_model *m = model_of(f, worker);
    size_t late = late_fragment(s), from = p->n, to = p->n;
    bool finite = false;

    BM_TRY(check_finite(s, &finite));
    *good = *good && finite;
    m->samples = *good ? samples : 0;
    m->left_out = !*good;
    if (late < f->n) {
        from = f->of[late].offset;
        to = from + f->of[late].params.n;
    }
    bm_axpby(p->be, from, 1, p->w, 0, m->w);
    bm_axpby(p->be, to - from, 1, p->w + from, -1, m->w + from);
    bm_axpby(p->be, p->n - to, 1, p->w + to, 0, m->w + to);
    return bm_sync(p->be);
}

/* Of one fragment: y <- start + y_factor y. p->w is scratch. */
static void put_start(const bm_strategy *s, const fragment *x, float y_factor,
                      float *y)
{
    const fragments *f = s->self;
    const bm_params *p = s->params;
    float *room = p->w + x->offset;

    bm_exchange_fetch(x->strategy->exchange, x->params.w);
    if (f->beside != NULL)
        bm_copy_between(p->be, room, f->beside, x->params.w, x->params.n);
    bm_axpby(p->be, x->params.n, 1, room, y_factor, y + x->offset);
}

/* The models that workers continue with, before the exchange of this block. */
static void correct(bm_strategy *s, size_t late)
{
    fragments *f = s->self;

    for (int k = f->first; k < f->last; k++) {
        own_model *m = model_of(f, k);

        for (size_t i = 0; i < f->n; i++) {
            m->seen[i] = m->left_out ? 0 : (float)(m->seen[i] + m->samples);
            if (m->left_out)
                put_start(s, &f->of[i], 0, m->w);
        }
        if (late < f->n && !m->left_out)
            put_start(s, &f->of[late], 1, m->w);
    }
}

/* Adds the fragment of all workers to its exchange, which reads it at
 * x->params.w: meanwhile that points into the model of one worker after the
 * other, unless it is on the second backend, where the fragments are copied to
 * it. A device subtracts its copy of start, which the fetch brings up to date. A
 * rank that fails goes on: the others wait for it in the exchange. */
static bm_status add(bm_strategy *s, fragment *x)
{
    fragments *f = s->self;
    size_t i = (size_t)(x - f->of);
    float *w = x->params.w;
    bm_status status = BM_OK;

    bm_exchange_fetch(x->strategy->exchange, w);
    for (int k = f->first; k < f->last; k++) {
        own_model *m = model_of(f, k);
        float *own = m->w + x->offset;
        bool good = true;

        if (f->beside != NULL)
            bm_copy_between(f->beside, w, s->params->be, own, x->params.n);
        else
            x->params.w = own;
        bm_keep_first(
            &status, bm_strategy_worker_end(x->strategy, k, m->seen[i], &good));
        m->seen[i] = 0;
    }
    x->params.w = w;
    return status;
}

/* The rate of its last exchange is a float, for checkpoints. */
static void note_rate(bm_strategy *s, const fragment *x)
{
    fragments *f = s->self;
    float *rate = &f->rates[x - f->of];

    x->strategy->rate = *rate;
    *rate = (float)s->rate;
    bm_strategy_block(x->strategy, s->block, *rate);
}

/* Workers begin at W. Under Nesterov momentum the Delta of another run moves the
 * start model away from it, and they are to learn from there. */
static void put_starts(bm_strategy *s)
{
    const fragments *f = s->self;

    for (int k = f->first; k < f->last; k++)
        for (size_t i = 0; i < f->n; i++)
            put_start(s, &f->of[i], 0, model_of(f, k)->w);
}

/* A fragment's block lasts until its next exchange. Eta is the same in the whole
 * run: settings that change it are refused (cli/settings.c). */
static bm_status update_settings(bm_strategy *s, const bm_run_point *at)
{
    fragments *f = s->self;
    bm_run_point of = *at;

    if (f->settings_known)
        return BM_OK;
    of.block_frames *= (double)f->n;
    for (size_t i = 0; i < f->n; i++)
        BM_TRY(bm_strategy_update_settings(f->of[i].strategy, &of));
    s->traits.filter = f->of[0].strategy->traits.filter;
    f->settings_known = true;
    if (!f->begins)
        return BM_OK;
    put_starts(s);
    return bm_sync(s->params->be);
}

/* Collective. The exchange of a fragment, which ends before the next block. */
static bm_status exchange_now(bm_strategy *s, fragment *x)
{
    const fragments *f = s->self;

    BM_TRY(bm_strategy_update(x->strategy));
    s->update = x->strategy->update;
    for (int k = f->first; k < f->last; k++)
        put_start(s, x, 0, model_of(f, k)->w);
    return BM_OK;
}

/* It runs during the next block. */
static void exchange_late(bm_strategy *s, fragment *x)
{
    fragments *f = s->self;

    f->under_way = x;
    s->update = (bm_update){f->last_update[0], read_field(f, 1),
                            read_field(f, 2), read_field(f, 3), NAN};
    (void)bm_comm_thread_put(f->thread, run_exchange, f);
}

static bm_status exchange(bm_strategy *s)
{
    fragments *f = s->self;
    fragment *now = fragment_of(f, s->block);

    BM_TRY(finish_late(s));
    correct(s, late_fragment(s));
    note_failure(f, add(s, now));
    note_rate(s, now);
    if (f->thread != NULL)
        exchange_late(s, now);
    else
        note_failure(f, exchange_now(s, now));
    note_failure(f, bm_sync(s->params->be));
    return failure(f);
}

/* ---- the whole model ----------------------------------------------------- */

static bm_status gather(bm_strategy *s, const bm_state *slices, float *x)
{
    fragments *f = s->self;
    bm_backend *be = s->params->be;

    BM_TRY(finish_late(s));
    for (size_t i = 0; i < f->n; i++) {
        const fragment *of = &f->of[i];
        float *part = x + of->offset;

        BM_TRY(bm_strategy_gather(of->strategy,
                                  slices != NULL ? &slices[i] : NULL,
                                  f->beside != NULL ? f->room : part));
        if (f->beside != NULL)
            bm_copy_between(be, part, f->beside, f->room, of->params.n);
    }
    return f->beside != NULL ? bm_sync(be) : BM_OK;
}

/* The states of all fragments, W first; workers' models; rates. */
static size_t state(bm_strategy *s, bm_state *out)
{
    fragments *f = s->self;
    size_t models = 0, n = f->n;

    wait_for_exchange(f);
    for (size_t i = 0; i < f->n; i++) {
        bm_state of[BM_STRATEGY_STATES];
        size_t m = bm_strategy_state(f->of[i].strategy, of);

        for (size_t j = 0; j < m; j++) {
            of[j].offset += f->of[i].offset;
            out[j == 0 ? models++ : n++] = of[j];
        }
    }
    for (int k = f->first; k < f->last; k++) {
        bm_state w = {"", s->params->be, model_of(f, k)->w, 0, s->params->n, 0};
        bm_state seen = {"", NULL, model_of(f, k)->seen, 0, f->n, f->n};

        snprintf(w.name, sizeof w.name, "own.%d", k);
        snprintf(seen.name, sizeof seen.name, "seen.%d", k);
        out[n++] = w;
        out[n++] = seen;
    }
    out[n++] = (bm_state){"rates", NULL, f->rates, 0, f->n, f->n};
    out[n++] = (bm_state){"told", NULL, f->last_update, 0, FIELDS, FIELDS};
    return n;
}

/* update_settings of the next block, which is the first one here, sets eta. Where
 * a run begins with Delta of another one, s->rate is the rate of that run's last
 * block. */
static bm_status resume(bm_strategy *s, const bm_run_point *before)
{
    fragments *f = s->self;

    f->begins = before == NULL;
    for (size_t i = 0; i < f->n; i++) {
        if (before == NULL)
            f->rates[i] = (float)s->rate;
        BM_TRY(bm_strategy_resume(f->of[i].strategy, NULL));
    }
    return BM_OK;
}

static void close(bm_strategy *s)
{
    fragments *f = s->self;

    if (f == NULL)
        return;
    wait_for_exchange(f);
    for (size_t i = 0; f->of != NULL && i < f->n; i++) {
        bm_strategy_close(f->of[i].strategy);
        free(f->of[i].layer_rates);
    }
    bm_free(f->beside, f->room);
    bm_backend_close(f->beside);
    bm_comm_thread_close(f->thread);
    for (int k = f->first; f->models != NULL && k < f->last; k++) {
        bm_free(s->params->be, model_of(f, k)->w);
        free(model_of(f, k)->seen);
    }
    bm_free(s->params->be, f->non_finite);
    free(f->of);
    free(f->models);
    free(f->rates);
    free(f);
}

static const bm_strategy_ops in_fragments = {
    .name = "fragments",
    .help = "wraps a strategy, for block.fragments and block.overlap",
    .per = BM_BLOCK,
    .close = close,
    .begin = begin,
    .worker_end = worker_end,
    .update_settings = update_settings,
    .exchange = exchange,
    .settle = settle,
    .gather = gather,
    .state = state,
    .resume = resume,
};

/* ---- opening ------------------------------------------------------------- */

static bm_status open_models(bm_strategy *s)
{
    fragments *f = s->self;
    bm_params *p = s->params;

    f->models = calloc((size_t)(f->last - f->first), sizeof *f->models);
    f->rates = calloc(f->n, sizeof *f->rates);
    if (f->models == NULL || f->rates == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for workers' models");
    for (int k = f->first; k < f->last; k++) {
        own_model *m = model_of(f, k);

        BM_TRY(bm_alloc_idle(p->be, p->n, &m->w));
        bm_axpby(p->be, p->n, 1, p->w, 0, m->w);
        m->seen = calloc(f->n, sizeof *m->seen);
        if (m->seen == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for counts");
    }
    if (!bm_on_host(p->be))
        BM_TRY(bm_alloc(p->be, 1, &f->non_finite));
    return bm_sync(p->be);
}

static bm_status cut(bm_strategy *s)
{
    fragments *f = s->self;
    const bm_params *p = s->params;
    size_t *begins = calloc(f->n + 1, sizeof *begins);
    bm_status status = BM_OK;

    f->of = calloc(f->n, sizeof *f->of);
    if (begins == NULL || f->of == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu fragments", f->n);
    BM_TRY_DONE(bm_fragments_cut(p, (long)f->n, begins));
    for (size_t i = 0; i < f->n; i++) {
        size_t at = begins[i], n = begins[i + 1] - at;

        f->of[i].offset = at;
        f->of[i].params = (bm_params){.be = p->be,
                                      .n = n,
                                      .n_learned = bm_learned(p, at, n),
                                      .w = p->w + at,
                                      .g = p->g + at};
        BM_TRY_DONE(
            bm_layer_rates_cut(&f->of[i].layer_rates, &f->of[i].params, p, at));
    }
done:
    free(begins);
    return status;
}

/* Opens the second backend, with memory for the longest fragment. */
static bm_status open_room(bm_strategy *s)
{
    fragments *f = s->self;
    size_t longest = 0;

    for (size_t i = 0; i < f->n; i++)
        if (f->of[i].params.n > longest)
            longest = f->of[i].params.n;
    BM_TRY(bm_backend_open_beside(&f->beside, s->params->be));
    BM_TRY(bm_alloc(f->beside, longest, &f->room));
    for (size_t i = 0; i < f->n; i++) {
        bm_params *p = &f->of[i].params;

        p->be = f->beside;
        p->w = p->g = f->room;
    }
    return BM_OK;
}

/* Collective. Not for exchanges that shall go by way of the host. */
static bm_status open_beside(bm_strategy *s)
{
    bm_status status = BM_OK;

    if (bm_on_host(s->params->be) || strcmp(s->job.exchange, "host") == 0)
        return BM_OK;
    status = bm_comm_agree(s->comm, open_room(s));
    if (status == BM_OK)
        return BM_OK;
    return BM_FAIL(status,
                   "block.overlap = yes: the device cannot exchange beside "
                   "training: %s; set job.exchange = host",
                   bm_last_message());
}

static bm_status open_inner(bm_strategy *s, const char *name,
                            const bm_config *config, bm_comm *comm)
{
    fragments *f = s->self;

    for (size_t i = 0; i < f->n; i++) {
        fragment *x = &f->of[i];

        if (f->beside != NULL)
            bm_copy_between(f->beside, f->room, s->params->be,
                            s->params->w + x->offset, x->params.n);
        BM_TRY(bm_strategy_open(&x->strategy, name, config, comm, &x->params));
        BM_ASSERT(x->strategy->ops->begin == NULL);
        BM_ASSERT(x->strategy->max_states <= BM_STRATEGY_STATES);
    }
    s->transport = f->of[0].strategy->transport;
    s->traits = f->of[0].strategy->traits;
    return BM_OK;
}

static bm_status start(bm_strategy *s, const char *name,
                       const bm_config *config, bm_comm *comm)
{
    fragments *f = s->self;

    BM_TRY(bm_comm_agree(comm, cut(s)));
    BM_TRY(bm_comm_agree(comm, open_models(s)));
    if (!s->late)
        return open_inner(s, name, config, comm);
    write_update(&(bm_update){0, NAN, NAN, NAN, NAN}, f->last_update);
    BM_TRY(bm_comm_thread_open(&f->thread, comm));
    BM_TRY(open_beside(s));
    return open_inner(s, name, config, bm_comm_thread_comm(f->thread));
}

static bm_status read_settings(bm_strategy *s, const bm_config *config)
{
    fragments *f = s->self;
    bm_block_settings block = {0};

    BM_TRY(bm_config_fill(config, "block", bm_block_options, &block));
    BM_TRY(bm_config_fill(config, "job", bm_job_options, &s->job));
    s->late = block.overlap;
    f->n = (size_t)block.fragments;
    return BM_OK;
}

bm_status bm_fragments_open(bm_strategy **out, const char *name,
                            const bm_config *config, bm_comm *comm,
                            bm_params *params)
{
    void *memory = NULL;
    bm_strategy *s = NULL;
    fragments *f = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_agreed_alloc(comm, sizeof *s, &memory));
    s = memory;
    s->ops = &in_fragments;
    s->comm = comm;
    s->params = params;
    BM_TRY_DONE(bm_agreed_alloc(comm, sizeof *f, &s->self));
    f = s->self;
    BM_TRY_DONE(bm_comm_agree(comm, read_settings(s, config)));
    BM_ASSERT(f->n > 0);
    f->first = bm_comm_first(comm, (int)s->job.workers, bm_comm_rank(comm));
    f->last = bm_comm_first(comm, (int)s->job.workers, bm_comm_rank(comm) + 1);
    s->max_states = f->n * BM_STRATEGY_STATES + 2 * (size_t)s->job.workers + 2;
    BM_TRY_DONE(start(s, name, config, comm));
    *out = s;
    s = NULL;
done:
    bm_strategy_close(s);
    return status;
}

void bm_fragments_footprint(const bm_block_settings *block, const bm_job *job,
                            bm_hosting on, bm_footprint *sum)
{
    sum->memory += on.hosted;
    if (block->overlap && strcmp(job->device, "cuda") == 0 &&
        strcmp(job->exchange, "host") != 0)
        sum->memory += 1 / (double)block->fragments; /* the room beside */
    sum->checkpoint += on.workers;
    sum->copied += on.hosted;
}
