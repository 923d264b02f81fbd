/* ema.c - one average for each slice of the model that the strategy lists. */
#include "bmuf/trainer/ema.h"

#include "sgd/layer_rates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bm_ema {
    bm_strategy *strategy; /* borrowed */
    double keep;
    bm_state *average; /* [n] */
    bm_state *model;   /* [n]: the strategy's, laid out alike */
    size_t n;
};

/* y <- a x + b y on the host. The exchange decides whether slices are there or on a
 * device: both must give the bits of bm_axpby. */
static void host_axpby(size_t n, float a, const float *x, float b, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = b == 0 ? a * x[i] : a * x[i] + b * y[i];
}

/* x <- keep x + (1 - keep) W */
static void approach(bm_ema *e, double keep)
{
    for (size_t i = 0; i < e->n; i++) {
        const bm_state *x = &e->average[i];
        const float *w = e->model[i].x;

        if (x->be != NULL)
            bm_axpby(x->be, x->count, (float)(1 - keep), w, (float)keep, x->x);
        else
            host_axpby(x->count, (float)(1 - keep), w, (float)keep, x->x);
        bm_frozen_copy(e->strategy->params, x, w);
    }
}

static bm_status open_slice(bm_state *x, const bm_state *model)
{
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

bm_status bm_ema_open(bm_ema **out, bm_strategy *s, double keep)
{
    bm_ema *e = calloc(1, sizeof *e);
    size_t states = 0;
    bm_status status = BM_OK;

    if (e != NULL) {
        e->strategy = s;
        e->average = calloc(s->max_states, sizeof *e->average);
        e->model = calloc(s->max_states, sizeof *e->model);
    }
    if (e == NULL || e->average == NULL || e->model == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for an average of models");
    e->keep = keep;
    states = bm_strategy_state(s, e->model);
    for (; e->n < states && strcmp(e->model[e->n].name, "model") == 0; e->n++)
        BM_TRY_DONE(open_slice(&e->average[e->n], &e->model[e->n]));
    approach(e, 0);
    *out = e;
    e = NULL;
done:
    bm_ema_close(e);
    return status;
}

void bm_ema_close(bm_ema *e)
{
    if (e == NULL)
        return;
    (void)bm_strategy_settle(e->strategy); /* which uses the same backend */
    for (size_t i = 0; i < e->n; i++) {
        const bm_state *x = &e->average[i];

        if (x->be != NULL)
            bm_free(x->be, x->x);
        else
            free(x->x);
    }
    free(e->average);
    free(e->model);
    free(e);
}

void bm_ema_update(bm_ema *e)
{
    approach(e, e->keep);
}

bm_status bm_ema_get(bm_ema *e, float *x)
{
    return bm_strategy_gather(e->strategy, e->average, x);
}

bm_status bm_ema_set(bm_ema *e, const float *x)
{
    bm_backend *be = e->strategy->params->be;

    for (size_t i = 0; i < e->n; i++) {
        const bm_state *own = &e->average[i];

        if (own->be != NULL)
            bm_copy_between(own->be, own->x, be, x + own->offset, own->count);
        else
            bm_get(be, own->x, x + own->offset, own->count);
    }
    return bm_sync(be);
}

size_t bm_ema_state(bm_ema *e, bm_state *out)
{
    memcpy(out, e->average, e->n * sizeof *out);
    return e->n;
}

void bm_ema_footprint(const bm_strategy_ops *ops, bm_hosting on,
                      bm_footprint *sum)
{
    double own = ops->per == BM_BLOCK ? 1 / on.ranks : 1;

    sum->memory += own;
    sum->checkpoint += 1;
    sum->copied += own;
}
