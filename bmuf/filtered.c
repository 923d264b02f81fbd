#include "bmuf/filtered.h"

#include "core/span.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct filtered {
    bm_filter filter;
    float *model; /* W, this rank's slice, on the host */
    float *delta; /* Delta, likewise */
} filtered;

/* Statistics follow the data: they become the plain mean of the workers'. */
static const bm_filter mean = {.momentum = 0, .rate = 1};

void bm_filtered_close(bm_strategy *s)
{
    filtered *b = s->self;

    if (b == NULL)
        return;
    free(b->model);
    free(b->delta);
    free(b);
}

bm_status bm_filtered_open(bm_strategy *s)
{
    const bm_params *p = s->params;
    bm_slice slice = bm_exchange_slice(s->exchange);
    filtered *b = s->self = calloc(1, sizeof *b);

    if (b == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to filter");
    b->filter = s->ops->filter(s->settings, (int)s->job.workers);
    b->model = malloc((slice.count + 1) * sizeof *b->model);
    b->delta = calloc(slice.count + 1, sizeof *b->delta);
    if (b->model == NULL || b->delta == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to filter %zu floats",
                       slice.count);
    bm_get(p->be, b->model, p->w + slice.offset, slice.count);
    return bm_sync(p->be);
}

/* G becomes start. */
static void filter(void *self, const bm_piece *p)
{
    const bm_strategy *s = self;
    const filtered *b = s->self;
    bm_slice slice = bm_exchange_slice(s->exchange);
    size_t n = bm_learned(s->params, p->offset, p->n);
    float *model = b->model + (p->offset - slice.offset);
    float *delta = b->delta + (p->offset - slice.offset);

    bm_filter_block(&b->filter, n, p->mean, model, delta, p->after);
    bm_exchange_multiply(s->exchange, p->offset, p->n, p->mean, delta);
    bm_filter_block(&mean, p->n - n, p->mean + n, model + n, delta + n,
                    p->after + n);
}

static bm_status note_norms(bm_strategy *s)
{
    bm_products p = {0};

    BM_TRY(bm_exchange_products(s->exchange, &p));
    s->update.g_norm = sqrt(p.aa);
    s->update.delta_norm = sqrt(p.bb);
    s->update.cos = p.aa * p.bb > 0 ? p.ab / sqrt(p.aa * p.bb) : NAN;
    return BM_OK;
}

/* Delta is made of steps at the rate of its time: it goes on as if they had
 * been made at this one. */
static void rescale(bm_strategy *s)
{
    filtered *b = s->self;
    bm_slice slice = bm_exchange_slice(s->exchange);
    size_t n = bm_learned(s->params, slice.offset, slice.count);
    float factor = s->rate_before > 0 ? (float)(s->rate / s->rate_before) : 1;

    for (size_t i = 0; factor != 1 && i < n; i++)
        b->delta[i] *= factor;
}

/* Without data nothing is done: no coasting on momentum either. */
bm_status bm_filtered_exchange(bm_strategy *s)
{
    const filtered *b = s->self;
    bm_span span = bm_span_begin("filter"); /* and the sum: they are one */
    bm_status status = BM_OK;

    if (b->filter.rescale)
        rescale(s);
    status = bm_exchange_update(s->exchange, filter, s, &s->update.weight);
    (void)bm_span_end(span);
    BM_TRY(status);
    return s->update.weight > 0 ? note_norms(s) : BM_OK;
}

bm_status bm_filtered_global(bm_strategy *s, float *x)
{
    const filtered *b = s->self;
    bm_slice slice = bm_exchange_slice(s->exchange);

    memcpy(slice.x, b->model, slice.count * sizeof *slice.x);
    return bm_exchange_gather(s->exchange, x);
}

bm_status bm_filtered_resume(bm_strategy *s)
{
    const filtered *b = s->self;
    const bm_filter *f = &b->filter;
    bm_slice slice = bm_exchange_slice(s->exchange);
    size_t n = bm_learned(s->params, slice.offset, slice.count);
    float *start = bm_exchange_common(s->exchange) + slice.offset;

    bm_filter_start(f, n, b->model, b->delta, start);
    bm_filter_start(&mean, slice.count - n, b->model + n, b->delta + n,
                    start + n);
    return BM_OK;
}

/* The start model follows from these two. */
size_t bm_filtered_state(bm_strategy *s, bm_state *out)
{
    filtered *b = s->self;
    bm_slice slice = bm_exchange_slice(s->exchange);

    out[0] = (bm_state){"model", NULL, b->model, slice.offset, slice.count, 0};
    out[1] = (bm_state){"delta", NULL, b->delta, slice.offset, slice.count, 0};
    return 2;
}

bm_status bm_filtered_count_alike(bm_strategy *s, int worker, double samples,
                                  bool *good)
{
    return bm_exchange_add(s->exchange, worker, s->params->w, s->start,
                           samples > 0, good);
}
