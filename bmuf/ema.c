#include "bmuf/ema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bm_ema {
    bm_strategy *strategy; /* borrowed */
    double share;
    bm_state state; /* like the strategy's first, which is the model */
};

/* x <- keep x + (1 - keep) W */
static void approach(bm_ema *e, double keep)
{
    bm_state w = bm_strategy_model(e->strategy), *x = &e->state;

    if (x->be != NULL)
        bm_axpby(x->be, x->count, (float)(1 - keep), w.x, (float)keep, x->x);
    else
        for (size_t i = 0; i < x->count; i++)
            x->x[i] = (float)(keep * x->x[i] + (1 - keep) * w.x[i]);
}

bm_status bm_ema_open(bm_ema **out, bm_strategy *s, double share)
{
    bm_ema *e = calloc(1, sizeof *e);
    bm_state *x = NULL;
    bm_status status = BM_OK;

    if (e == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an average of models");
    e->strategy = s;
    e->share = share;
    x = &e->state;
    *x = bm_strategy_model(s);
    snprintf(x->name, sizeof x->name, "ema");
    x->x = NULL;
    if (x->be != NULL)
        BM_TRY_DONE(bm_alloc(x->be, x->count, &x->x));
    else
        x->x = calloc(x->count + 1, sizeof *x->x);
    if (x->x == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for an average of models");
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
    if (e->state.be != NULL)
        bm_free(e->state.be, e->state.x);
    else
        free(e->state.x);
    free(e);
}

void bm_ema_update(bm_ema *e)
{
    approach(e, e->share);
}

bm_status bm_ema_get(bm_ema *e, float *x)
{
    const bm_state *own = &e->state;

    if (e->strategy->ops->unit == BM_BLOCK) /* slices */
        return bm_exchange_gather(e->strategy->exchange, own->x, x);
    bm_axpby(own->be, own->count, 1, own->x, 0, x);
    return bm_sync(own->be);
}

bm_status bm_ema_set(bm_ema *e, const float *x)
{
    const bm_state *own = &e->state;

    if (e->strategy->ops->unit == BM_BLOCK)
        return bm_exchange_cut(e->strategy->exchange, x, own->x);
    bm_axpby(own->be, own->count, 1, x, 0, own->x);
    return bm_sync(own->be);
}

bm_state bm_ema_state(bm_ema *e)
{
    return e->state;
}
