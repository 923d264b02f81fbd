#include "bmuf/ema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a part of the vector. */
typedef struct average {
    bm_state state;
    const float *model; /* of the strategy, likewise */
} average;

struct bm_ema {
    bm_strategy *strategy; /* borrowed */
    double share;
    average *parts; /* [n] */
    size_t n;       /* 1, or the strategy's */
};

/* x <- keep x + (1 - keep) W */
static void approach(bm_ema *e, double keep)
{
    for (size_t i = 0; i < e->n; i++) {
        const bm_state *x = &e->parts[i].state;
        const float *w = e->parts[i].model;

        if (x->be != NULL)
            bm_axpby(x->be, x->count, (float)(1 - keep), w, (float)keep, x->x);
        for (size_t j = 0; x->be == NULL && j < x->count; j++)
            x->x[j] = (float)(keep * x->x[j] + (1 - keep) * w[j]);
    }
}

static bm_status open_part(average *a, const bm_state *model)
{
    bm_state *x = &a->state;

    a->model = model->x;
    *x = *model;
    snprintf(x->name, sizeof x->name, "ema");
    x->x = NULL;
    if (x->be != NULL)
        return bm_alloc(x->be, x->count, &x->x);
    x->x = calloc(x->count + 1, sizeof *x->x);
    if (x->x == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an average of models");
    return BM_OK;
}

bm_status bm_ema_open(bm_ema **out, bm_strategy *s, double share)
{
    bm_ema *e = calloc(1, sizeof *e);
    bm_state *models = calloc(bm_strategy_states(s), sizeof *models);
    size_t n = s->n_parts > 0 ? s->n_parts : 1;
    bm_status status = BM_OK;

    if (e != NULL)
        e->parts = calloc(n, sizeof *e->parts);
    if (e == NULL || e->parts == NULL || models == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for an average of models");
    e->strategy = s;
    e->share = share;
    e->n = n;
    (void)bm_strategy_state(s, models);
    for (size_t i = 0; i < n; i++)
        BM_TRY_DONE(open_part(&e->parts[i], &models[i]));
    approach(e, 0);
    *out = e;
    e = NULL;
done:
    bm_ema_close(e);
    free(models);
    return status;
}

void bm_ema_close(bm_ema *e)
{
    if (e == NULL)
        return;
    for (size_t i = 0; i < e->n; i++) {
        const bm_state *x = &e->parts[i].state;

        if (x->be != NULL)
            bm_free(x->be, x->x);
        else
            free(x->x);
    }
    free(e->parts);
    free(e);
}

void bm_ema_update(bm_ema *e)
{
    approach(e, e->share);
}

/* Every rank has all of it: there are no slices of models. */
static bool is_whole(const bm_ema *e)
{
    return e->strategy->ops->unit != BM_BLOCK;
}

/* The exchange of a part, and where in the vector its first element is. */
static bm_exchange *exchange_of(const bm_ema *e, size_t i, size_t *begin)
{
    const bm_strategy *s =
        e->strategy->n_parts > 0 ? e->strategy->parts[i] : e->strategy;

    *begin = e->parts[i].state.offset - bm_exchange_slice(s->exchange).offset;
    return s->exchange;
}

bm_status bm_ema_get(bm_ema *e, float *x)
{
    const bm_state *own = &e->parts[0].state;
    size_t begin = 0;

    bm_strategy_settle(e->strategy);
    if (is_whole(e)) {
        bm_axpby(own->be, own->count, 1, own->x, 0, x);
        return bm_sync(own->be);
    }
    for (size_t i = 0; i < e->n; i++) {
        bm_exchange *of = exchange_of(e, i, &begin);
        BM_TRY(bm_exchange_gather(of, e->parts[i].state.x, x + begin));
    }
    return BM_OK;
}

bm_status bm_ema_set(bm_ema *e, const float *x)
{
    const bm_state *own = &e->parts[0].state;
    size_t begin = 0;

    bm_strategy_settle(e->strategy);
    if (is_whole(e)) {
        bm_axpby(own->be, own->count, 1, x, 0, own->x);
        return bm_sync(own->be);
    }
    for (size_t i = 0; i < e->n; i++) {
        bm_exchange *of = exchange_of(e, i, &begin);
        BM_TRY(bm_exchange_cut(of, x + begin, e->parts[i].state.x));
    }
    return BM_OK;
}

size_t bm_ema_state(bm_ema *e, bm_state *out)
{
    for (size_t i = 0; i < e->n; i++)
        out[i] = e->parts[i].state;
    return e->n;
}
