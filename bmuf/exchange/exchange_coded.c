/*
 * exchange_coded.c - updates that travel as codes with error feedback
 * (comm/sum/coded_sum.h):
 *
 *     G_k      what worker k changed, and its residual r_k      -> owners
 *     start    its change, and what was lost before             -> all ranks
 *
 * Workers start from the decoded vector; the filter's W and Delta are exact. On a
 * device that has the code (coded_device.h) workers' vectors are encoded and
 * `start` is decoded there; the host adds and filters slices.
 * Means (bm_exchange_mean) do not travel as codes: an exchange by way of the
 * host takes them, and moves vectors between the backend and the host.
 */
#include "bmuf/exchange/coded_device.h"
#include "bmuf/exchange/columns.h"
#include "bmuf/exchange/exchange_host.h"
#include "bmuf/exchange/exchange_ops.h"
#include "comm/agreed_alloc.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct coded {
    bm_exchange *plain; /* bm_exchange_host */
    bm_coded_sum *sum;
    bm_coded_device *device; /* NULL: the host encodes */
    enum {
        FRESH,    /* has all updates */
        CODED,    /* lacks the last update, whose code is on the host */
        REPLACED, /* is of another vector, and e->common is to be copied */
    } on_device;  /* the device's copy of e->common */
} coded;

/* Not collective. */
static bm_status open_device(const bm_exchange *e, coded *c)
{
    bm_code_kind kind = BM_CODE_FP32;
    int first = 0, last = 0;

    if (bm_on_host(e->be) ||
        !bm_device_code_find(e->be, e->code.ops->name, &kind))
        return BM_OK;
    bm_coded_sum_hosted(c->sum, &first, &last);
    BM_TRY(bm_coded_device_open(&c->device, e->be, bm_coded_sum_plan(c->sum),
                                kind, first, last));
    bm_coded_sum_elsewhere(c->sum);
    return BM_OK;
}

static bm_status coded_open(bm_exchange *e, const bm_job *job)
{
    coded *c = NULL;
    const bm_code none = {0};
    bm_code_plan plan = {0};
    bm_job by_host = *job;
    bm_status status = BM_OK;

    BM_TRY(bm_agreed_alloc(e->comm, sizeof *c, &e->self));
    c = e->self;
    by_host.exchange = "host";
    BM_TRY(bm_exchange_open(&c->plain, e->comm, e->params, &by_host, none,
                            e->mode));
    status = bm_comm_agree(e->comm, bm_columns_plan(&plan, e->code, e->params));
    if (status != BM_OK) {
        bm_code_plan_free(&plan);
        return status;
    }
    BM_TRY(bm_coded_sum_open(&c->sum, e->comm, &plan, (int)job->workers,
                             job->coordinator, e->mode));
    BM_TRY(bm_comm_agree(e->comm, open_device(e, c)));
    e->transport = bm_exchange_transport(c->plain);
    e->slice = bm_coded_sum_slice(c->sum);
    e->common = bm_coded_sum_common(c->sum);
    return BM_OK;
}

static void coded_close(bm_exchange *e)
{
    coded *c = e->self;

    if (c == NULL)
        return;
    bm_coded_device_close(c->device);
    bm_coded_sum_close(c->sum);
    bm_exchange_close(c->plain);
    free(c);
}

/* Queued: brings the device's common vector up to date. */
static void refresh(bm_exchange *e)
{
    coded *c = e->self;

    if (c->on_device == CODED)
        bm_coded_device_decode(c->device, bm_coded_sum_back(c->sum),
                               e->mode == BM_CODED_CHANGE);
    if (c->on_device == REPLACED)
        bm_coded_device_replace(c->device, e->common);
    c->on_device = FRESH;
}

static bm_status add_on_device(bm_exchange *e, int worker, const float *x,
                               const float *from, double weight, bool *good)
{
    coded *c = e->self;
    bm_coded_vector v = {worker, x, from != NULL,
                         from != NULL ? e->params->n_learned : 0};
    const void *code = NULL;
    double square = 0;
    bm_status status = BM_OK;

    *good = true;
    refresh(e);
    if (weight > 0)
        status = bm_coded_device_encode(c->device, &v, &square, &code, good);
    if (!*good || status != BM_OK)
        weight = 0;
    e->squares[worker] = weight > 0 ? weight * square : 0;
    bm_coded_sum_add_code(c->sum, worker, code, weight);
    return status;
}

/* A change of the common vector, or a gradient, is for an update. */
static bm_status coded_add(bm_exchange *e, int worker, const float *x,
                           const float *from, double weight, bool *good)
{
    coded *c = e->self;
    float *room = bm_exchange_host_room(c->plain);
    bm_status status = BM_OK;

    if (from == NULL && e->mode == BM_CODED_CHANGE)
        return bm_exchange_add(c->plain, worker, x, NULL, weight, good);
    if (c->device != NULL)
        return add_on_device(e, worker, x, from, weight, good);
    status =
        bm_exchange_host_difference(c->plain, x, from, weight > 0, room, good);
    if (!*good || status != BM_OK)
        weight = 0;
    bm_exchange_note(e, worker, from != NULL ? weight : 0, room);
    if (!bm_coded_sum_add(c->sum, worker, room, weight))
        *good = false;
    return status;
}

static bm_status coded_mean(bm_exchange *e, float *x)
{
    coded *c = e->self;
    return bm_exchange_mean(c->plain, x);
}

static bm_status coded_update(bm_exchange *e, double *weight)
{
    coded *c = e->self;

    BM_ASSERT(c->on_device == FRESH); /* workers have been added */
    bm_exchange_host_changed(c->plain);
    BM_TRY(bm_coded_sum_update(c->sum, bm_exchange_apply, e, weight));
    if (c->device != NULL && *weight > 0)
        c->on_device = CODED;
    return BM_OK;
}

static bm_status coded_allgather(bm_exchange *e)
{
    coded *c = e->self;

    bm_exchange_host_changed(c->plain);
    if (c->device != NULL)
        c->on_device = REPLACED;
    return bm_coded_sum_allgather(c->sum);
}

static bm_status coded_gather(bm_exchange *e, const float *slice, float *x)
{
    coded *c = e->self;
    float *to = bm_on_host(e->be) ? x : bm_exchange_host_room(c->plain);

    BM_TRY(bm_coded_sum_gather(c->sum, slice, to));
    if (to != x)
        bm_put(e->be, x, to, e->n);
    return bm_sync(e->be);
}

static void coded_fetch(bm_exchange *e, float *x)
{
    coded *c = e->self;

    if (c->device == NULL) {
        bm_exchange_host_fetch(c->plain, e->common, x);
        return;
    }
    refresh(e);
    bm_coded_device_fetch(c->device, x);
}

/* Where the common vector is the start of the previous filter, it becomes that of
 * the rule, bit for bit. */
static bm_status coded_start(bm_exchange *e, const bm_rule *rule,
                             const bm_filter *previous)
{
    const bm_rule old = {.filter = previous};
    size_t at = e->slice.offset, count = e->slice.count;

    if (previous == NULL)
        return BM_OK;
    for (size_t i = 0; i < count; i += BM_SUM_CHUNK) {
        size_t n = count - i < BM_SUM_CHUNK ? count - i : BM_SUM_CHUNK;
        size_t learned = bm_learned(e->params, at + i, n);
        float *x = e->common + at + i, from[BM_SUM_CHUNK], to[BM_SUM_CHUNK];

        bm_exchange_start_of(&old, n, learned, rule->model + i, rule->delta + i,
                             from);
        bm_exchange_start_of(rule, n, learned, rule->model + i, rule->delta + i,
                             to);
        for (size_t j = 0; j < n; j++)
            x[j] = to[j] - (from[j] - x[j]);
    }
    return BM_OK;
}

/* ---- states -------------------------------------------------------------- */

static size_t coded_states(const bm_exchange *e)
{
    const coded *c = e->self;
    int first = 0, last = 0;

    bm_coded_sum_hosted(c->sum, &first, &last);
    return (size_t)(last - first) + 1;
}

static size_t coded_state(const bm_exchange *e, bm_state *out)
{
    const coded *c = e->self;
    size_t offset = e->slice.offset, count = e->slice.count, n = 0;
    int first = 0, last = 0;

    bm_coded_sum_hosted(c->sum, &first, &last);
    for (int k = first; k < last; k++) {
        float *residual = c->device != NULL
                              ? bm_coded_device_residual(c->device, k)
                              : bm_coded_sum_residual(c->sum, k);

        if (e->code.ops->exact)
            break;
        out[n] = (bm_state){.be = c->device != NULL ? e->be : NULL,
                            .x = residual,
                            .count = e->n};
        snprintf(out[n++].name, sizeof out->name, "residual.%d", k);
    }
    if (e->mode == BM_CODED_CHANGE)
        out[n++] =
            (bm_state){"common", NULL, e->common + offset, offset, count, 0};
    else if (bm_coded_sum_rest(c->sum) != NULL)
        out[n++] = (bm_state){"residual", NULL,  bm_coded_sum_rest(c->sum),
                              offset,     count, 0};
    return n;
}

const bm_exchange_ops bm_exchange_coded = {
    .memory = &bm_slices_on_host,
    .open = coded_open,
    .close = coded_close,
    .add = coded_add,
    .mean = coded_mean,
    .update = coded_update,
    .allgather = coded_allgather,
    .gather = coded_gather,
    .fetch = coded_fetch,
    .start = coded_start,
    .states = coded_states,
    .state = coded_state,
};
