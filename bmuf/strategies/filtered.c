/* filtered.c - one block of a strategy that filters: this rank's slice of the
 * mean G goes through bm_filter_block, and all ranks get all slices. */
#include "bmuf/strategies/filtered.h"

#include <math.h>
#include <stdlib.h>

typedef struct filtered {
    float *model; /* W, this rank's slice, in the exchange's memory */
    float *delta; /* Delta, likewise */
} filtered;

void bm_filtered_close(bm_strategy *s)
{
    filtered *b = s->self;

    if (b == NULL)
        return;
    bm_exchange_free(s->exchange, b->model);
    bm_exchange_free(s->exchange, b->delta);
    free(b);
}

bm_status bm_filtered_open(bm_strategy *s)
{
    filtered *b = s->self = calloc(1, sizeof *b);

    if (b == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to filter");
    BM_TRY(bm_exchange_alloc(s->exchange, &b->model));
    BM_TRY(bm_exchange_alloc(s->exchange, &b->delta));
    return bm_exchange_cut(s->exchange, s->params->w, b->model);
}

static bm_rule rule(const bm_strategy *s)
{
    const filtered *b = s->self;
    return (bm_rule){BM_FILTER, &s->traits.filter, b->model, b->delta};
}

static bm_status note_norms(bm_strategy *s)
{
    bm_products p = {0};

    BM_TRY(bm_exchange_products(s->exchange, &p));
    s->update.g_norm = sqrt(p.aa);
    s->update.delta_norm = sqrt(p.bb);
    s->update.worker_norm = sqrt(p.workers);
    s->update.cos = p.aa * p.bb > 0 ? p.ab / sqrt(p.aa * p.bb) : NAN;
    return BM_OK;
}

/* Delta was made at the learning rate of its time. It is scaled as if its steps
 * had been made at the rate of this block. */
static void rescale(bm_strategy *s)
{
    filtered *b = s->self;
    float factor = s->rate_before > 0 ? (float)(s->rate / s->rate_before) : 1;

    if (factor != 1)
        bm_exchange_scale(s->exchange, factor, b->delta);
}

/* A block without data changes nothing: Delta does not move the model either.
 */
bm_status bm_filtered_exchange(bm_strategy *s)
{
    const bm_rule r = rule(s);

    if (r.filter->rescale)
        rescale(s);
    BM_TRY(bm_exchange_update(s->exchange, &r, &s->update.weight));
    return s->update.weight > 0 ? note_norms(s) : BM_OK;
}

bm_status bm_filtered_start(bm_strategy *s, const bm_filter *previous)
{
    const bm_rule r = rule(s);
    return bm_exchange_start(s->exchange, &r, previous);
}

/* The start model follows from these two. */
size_t bm_filtered_state(bm_strategy *s, bm_state *out)
{
    filtered *b = s->self;
    bm_slice slice = bm_exchange_slice(s->exchange);
    bm_backend *be = bm_exchange_backend(s->exchange);

    out[0] = (bm_state){"model", be, b->model, slice.offset, slice.count, 0};
    out[1] = (bm_state){"delta", be, b->delta, slice.offset, slice.count, 0};
    return 2;
}
