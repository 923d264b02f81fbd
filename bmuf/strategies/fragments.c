#include "bmuf/strategies/fragments.h"

#include "bmuf/block_settings.h"
#include "comm/comm_thread.h"
#include "core/finite.h"
#include "core/span.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct fragment {
    size_t offset;
    bm_params params; /* a part of the vector; w is what is looked at */
    bm_strategy *strategy;
} fragment;

/* A worker hosted here. */
typedef struct member {
    float *w;    /* [n] on the backend, with x_k - b_k while a block ends */
    float *seen; /* [fragments]: samples since its last exchange */
    double samples;
    bool astray; /* it is left out of the block */
} member;

enum { TOLD = 4, NOTHING = -2 }; /* numbers of a bm_update; NAN */

typedef struct fragments {
    bm_strategy_ops ops; /* those of the strategy, but for the hooks here */
    bm_strategy *whole;
    fragment *parts; /* [n] */
    size_t n;
    member *members; /* [last - first] */
    int first, last;
    float *rates;         /* [n]: at the last exchange; 0: there was none */
    float *odd;           /* on a device: is something no number? */
    bm_comm_thread *lane; /* NULL: nothing overlaps */
    fragment *flying;     /* on it; NULL: none */
    float told[TOLD];     /* of what flew last: its bm_update */
    bm_status failed;     /* there, which is yet to be told */
    char error[512];
} fragments;

/* ---- what is where ------------------------------------------------------- */

static member *member_of(const fragments *f, int worker)
{
    return &f->members[worker - f->first];
}

/* Whose exchange block t ends with. */
static fragment *turn(const fragments *f, int64_t t)
{
    return &f->parts[(size_t)t % f->n];
}

/* The number of the one that workers were not yet corrected by; n: none. */
static size_t pending(const fragments *f)
{
    int64_t t = f->whole->blocks;
    return f->lane != NULL && t > 0 ? (size_t)(t - 1) % f->n : f->n;
}

/* ---- the lane ------------------------------------------------------------ */

static bm_status fly(void *self)
{
    fragments *f = self;
    bm_strategy *s = f->flying->strategy, *whole = f->whole;
    bm_span span = bm_span_begin("exchange");
    bm_status status = bm_strategy_update(s);

    (void)bm_span_end(span);
    BM_TRY(status);
    if (s->update.weight > 0 && whole->changed != NULL)
        whole->changed(whole->changed_self);
    return BM_OK;
}

/* In floats, for checkpoints, which hold none that is no number. */
static void write_told(const bm_update *u, float told[TOLD])
{
    const double all[TOLD] = {u->weight, u->g_norm, u->delta_norm, u->cos};

    for (int i = 0; i < TOLD; i++)
        told[i] = isfinite(all[i]) ? (float)all[i] : NOTHING;
}

static double read_told(const fragments *f, int i)
{
    return f->told[i] == NOTHING ? NAN : f->told[i];
}

/* Waits for what flies. A failure is kept for those who can tell it. */
static void settle(bm_strategy *s)
{
    fragments *f = s->self;
    bm_status status = BM_OK;

    if (f->flying == NULL)
        return;
    status = bm_comm_thread_wait_all(f->lane);
    write_told(&f->flying->strategy->update, f->told);
    f->flying = NULL;
    if (status != BM_OK && f->failed == BM_OK) {
        f->failed = status;
        snprintf(f->error, sizeof f->error, "%s", bm_last_message());
    }
}

static bm_status landed(bm_strategy *s)
{
    fragments *f = s->self;

    settle(s);
    if (f->failed != BM_OK)
        return BM_FAIL(f->failed, "%s", f->error);
    return BM_OK;
}

/* ---- a block ------------------------------------------------------------- */

static void begin(bm_strategy *s, int turn)
{
    const fragments *f = s->self;
    bm_params *p = s->params;

    bm_axpby(p->be, p->n, 1, f->members[turn].w, 0, p->w);
}

/* Is w of numbers alone? g is used up by now, and has room. */
static bm_status look(const bm_strategy *s, bool *good)
{
    const fragments *f = s->self;
    const bm_params *p = s->params;
    float odd = 0;

    if (bm_on_host(p->be)) {
        BM_TRY(bm_sync(p->be));
        *good = bm_all_finite(p->w, p->n);
        return BM_OK;
    }
    bm_difference(p->be, p->n, p->w, NULL, p->g, f->odd);
    bm_get(p->be, &odd, f->odd, 1);
    BM_TRY(bm_sync(p->be));
    *good = odd == 0;
    return BM_OK;
}

/* x_k is kept, of what flies x_k - b_k. */
static bm_status worker_end(bm_strategy *s, int worker, double samples,
                            bool *good)
{
    const bm_params *p = s->params;
    const fragments *f = s->self;
    member *m = member_of(f, worker);
    size_t late = pending(f), from = p->n, to = p->n;

    BM_TRY(look(s, good));
    m->samples = *good ? samples : 0;
    m->astray = !*good;
    if (late < f->n) {
        from = f->parts[late].offset;
        to = from + f->parts[late].params.n;
    }
    bm_axpby(p->be, from, 1, p->w, 0, m->w);
    bm_axpby(p->be, to - from, 1, p->w + from, -1, m->w + from);
    bm_axpby(p->be, p->n - to, 1, p->w + to, 0, m->w + to);
    return bm_sync(p->be);
}

static void leave_out(bm_strategy *s, int worker)
{
    member_of(s->self, worker)->astray = true;
}

/* Of one fragment: y = start, or start + y. p->w has room for it. */
static void put_start(const bm_strategy *s, const fragment *x, float y_factor,
                      float *y)
{
    const bm_params *p = s->params;
    float *room = p->w + x->offset;

    bm_exchange_fetch(x->strategy->exchange, room);
    bm_axpby(p->be, x->params.n, 1, room, y_factor, y + x->offset);
}

/* What workers go on with, but for the exchange that comes now. */
static void correct(bm_strategy *s, size_t late)
{
    fragments *f = s->self;

    for (int k = f->first; k < f->last; k++) {
        member *m = member_of(f, k);

        for (size_t i = 0; i < f->n; i++) {
            m->seen[i] = m->astray ? 0 : (float)(m->seen[i] + m->samples);
            if (m->astray)
                put_start(s, &f->parts[i], 0, m->w);
        }
        if (late < f->n && !m->astray)
            put_start(s, &f->parts[late], 1, m->w);
    }
}

/* All workers' fragments are added. What a device takes them from is its copy
 * of start, which fetching brings up to date. */
static bm_status add(bm_strategy *s, fragment *x)
{
    fragments *f = s->self;
    size_t i = (size_t)(x - f->parts);
    bm_status status = BM_OK;

    bm_exchange_fetch(x->strategy->exchange, s->params->w + x->offset);
    for (int k = f->first; k < f->last && status == BM_OK; k++) {
        member *m = member_of(f, k);
        bool good = true;

        x->params.w = m->w + x->offset;
        status = bm_strategy_worker_end(x->strategy, k, m->seen[i], &good);
        m->seen[i] = 0;
    }
    x->params.w = s->params->w + x->offset;
    return status;
}

/* The rate of its last exchange is a float, for checkpoints. */
static void note_rate(bm_strategy *s, const fragment *x)
{
    fragments *f = s->self;
    float *rate = &f->rates[x - f->parts];

    x->strategy->rate = *rate;
    *rate = (float)s->rate;
    bm_strategy_block(x->strategy, *rate);
}

static bm_status exchange(bm_strategy *s)
{
    fragments *f = s->self;
    fragment *now = turn(f, s->blocks);

    BM_TRY(landed(s));
    correct(s, pending(f));
    BM_TRY(add(s, now));
    note_rate(s, now);
    s->blocks++;
    if (f->lane != NULL) {
        f->flying = now;
        s->update = (bm_update){f->told[0], read_told(f, 1), read_told(f, 2),
                                read_told(f, 3)};
        (void)bm_comm_thread_put(f->lane, fly, f);
        return bm_sync(s->params->be);
    }
    BM_TRY(bm_strategy_update(now->strategy));
    s->update = now->strategy->update;
    for (int k = f->first; k < f->last; k++)
        put_start(s, now, 0, member_of(f, k)->w);
    return bm_sync(s->params->be);
}

/* ---- the whole ----------------------------------------------------------- */

static bm_status global(bm_strategy *s, float *x)
{
    fragments *f = s->self;

    BM_TRY(landed(s));
    for (size_t i = 0; i < f->n; i++)
        BM_TRY(
            bm_strategy_global(f->parts[i].strategy, x + f->parts[i].offset));
    return BM_OK;
}

/* Those of all fragments, W first; what workers have; rates. */
static size_t state(bm_strategy *s, bm_state *out)
{
    fragments *f = s->self;
    size_t models = 0, n = f->n;

    settle(s);
    for (size_t i = 0; i < f->n; i++) {
        bm_state of[BM_STRATEGY_STATES];
        size_t m = bm_strategy_state(f->parts[i].strategy, of);

        for (size_t j = 0; j < m; j++) {
            of[j].offset += f->parts[i].offset;
            out[j == 0 ? models++ : n++] = of[j];
        }
    }
    for (int k = f->first; k < f->last; k++) {
        bm_state w = {"", s->params->be, member_of(f, k)->w,
                      0,  s->params->n,  0};
        bm_state seen = {"", NULL, member_of(f, k)->seen, 0, f->n, f->n};

        snprintf(w.name, sizeof w.name, "own.%d", k);
        snprintf(seen.name, sizeof seen.name, "seen.%d", k);
        out[n++] = w;
        out[n++] = seen;
    }
    out[n++] = (bm_state){"rates", NULL, f->rates, 0, f->n, f->n};
    out[n++] = (bm_state){"told", NULL, f->told, 0, TOLD, TOLD};
    return n;
}

static bm_status resume(bm_strategy *s)
{
    fragments *f = s->self;

    for (size_t i = 0; i < f->n; i++)
        BM_TRY(bm_strategy_resume(f->parts[i].strategy));
    return BM_OK;
}

static void close(bm_strategy *s)
{
    fragments *f = s->self;

    if (f == NULL)
        return;
    settle(s);
    for (size_t i = 0; f->parts != NULL && i < f->n; i++)
        bm_strategy_close(f->parts[i].strategy);
    bm_comm_thread_close(f->lane);
    for (int k = f->first; f->members != NULL && k < f->last; k++) {
        bm_free(s->params->be, member_of(f, k)->w);
        free(member_of(f, k)->seen);
    }
    bm_free(s->params->be, f->odd);
    free(f->parts);
    free(f->members);
    free(f->rates);
    free(s->parts);
    free(f);
}

/* ---- opening ------------------------------------------------------------- */

static bm_status open_members(bm_strategy *s)
{
    fragments *f = s->self;
    bm_params *p = s->params;

    f->members = calloc((size_t)(f->last - f->first), sizeof *f->members);
    f->rates = calloc(f->n, sizeof *f->rates);
    if (f->members == NULL || f->rates == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for workers' models");
    for (int k = f->first; k < f->last; k++) {
        member *m = member_of(f, k);

        BM_TRY(bm_alloc(p->be, p->n, &m->w));
        bm_axpby(p->be, p->n, 1, p->w, 0, m->w);
        m->seen = calloc(f->n, sizeof *m->seen);
        if (m->seen == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for counts");
    }
    if (!bm_on_host(p->be))
        BM_TRY(bm_alloc(p->be, 1, &f->odd));
    return bm_sync(p->be);
}

static bm_status cut(bm_strategy *s)
{
    fragments *f = s->self;
    const bm_params *p = s->params;
    size_t *begins = calloc(f->n + 1, sizeof *begins);
    bm_status status = BM_OK;

    f->parts = calloc(f->n, sizeof *f->parts);
    s->parts = calloc(f->n, sizeof(bm_strategy *));
    if (begins == NULL || f->parts == NULL || s->parts == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu fragments", f->n);
    BM_TRY_DONE(bm_fragments_cut(p, (long)f->n, begins));
    for (size_t i = 0; i < f->n; i++) {
        size_t at = begins[i], n = begins[i + 1] - at;

        f->parts[i].offset = at;
        f->parts[i].params = (bm_params){.be = p->be,
                                         .n = n,
                                         .n_learned = bm_learned(p, at, n),
                                         .w = p->w + at,
                                         .g = p->g + at};
    }
done:
    free(begins);
    return status;
}

static bm_status open_parts(bm_strategy *s, const char *name,
                            const bm_config *config, bm_comm *comm)
{
    fragments *f = s->self;

    for (size_t i = 0; i < f->n; i++) {
        fragment *x = &f->parts[i];

        BM_TRY(bm_strategy_open_whole(&x->strategy, name, config, comm,
                                      &x->params, f->lane != NULL));
        s->parts[s->n_parts++] = x->strategy;
    }
    return BM_OK;
}

/* The strategy as it is, with hooks that deal with its fragments. */
static void hook(bm_strategy *s, const bm_strategy_ops *ops)
{
    fragments *f = s->self;

    f->ops = (bm_strategy_ops){.name = ops->name,
                               .help = ops->help,
                               .unit = ops->unit,
                               .options = ops->options,
                               .settings_size = ops->settings_size,
                               .filter = ops->filter,
                               .close = close,
                               .begin = begin,
                               .worker_end = worker_end,
                               .leave_out = leave_out,
                               .exchange = exchange,
                               .global = global,
                               .state = state,
                               .resume = resume};
    s->ops = &f->ops;
}

static bm_status start(bm_strategy *s, const char *name,
                       const bm_config *config, bm_comm *comm, bool overlap)
{
    fragments *f = s->self;
    bm_comm *own = comm;

    BM_TRY(bm_comm_agree(comm, cut(s)));
    BM_TRY(bm_comm_agree(comm, open_members(s)));
    if (overlap) {
        f->ops.settle = settle;
        write_told(&(bm_update){0, NAN, NAN, NAN}, f->told);
        BM_TRY(bm_comm_thread_open(&f->lane, comm));
        own = bm_comm_thread_comm(f->lane);
    }
    return open_parts(s, name, config, own);
}

bm_status bm_fragments_open(bm_strategy **out, const char *name,
                            const bm_config *config, bm_comm *comm,
                            bm_params *params)
{
    bm_strategy *s = calloc(1, sizeof *s);
    fragments *f = calloc(1, sizeof *f);
    bm_block_settings block = {0};
    bm_status status = BM_OK;

    if (s == NULL || f == NULL) {
        free(s);
        free(f);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for fragments");
    }
    s->self = f;
    s->comm = comm;
    s->params = params;
    f->whole = s;
    hook(s, bm_strategy_find(name));
    BM_TRY_DONE(bm_config_fill(config, "block", bm_block_options, &block));
    BM_TRY_DONE(bm_config_fill(config, "job", bm_job_options, &s->job));
    f->n = (size_t)block.fragments;
    f->first = bm_comm_first(comm, (int)s->job.workers, bm_comm_rank(comm));
    f->last = bm_comm_first(comm, (int)s->job.workers, bm_comm_rank(comm) + 1);
    BM_TRY_DONE(start(s, name, config, comm, block.overlap));
    *out = s;
    s = NULL;
done:
    bm_strategy_close(s);
    return status;
}
