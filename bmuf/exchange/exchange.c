/* exchange.c - chooses an implementation, and what all of them share. */
#include "bmuf/exchange/exchange.h"

#include "bmuf/exchange/exchange_ops.h"
#include "bmuf/filter_loops.h"
#include "comm/agreed_alloc.h"
#include "compute/device_comm.h"
#include "core/log.h"
#include "core/trace/span.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)BM_FILTER_CHUNK == (int)BM_SUM_CHUNK,
               "the filter and the sum have the same chunks");

/* Statistics follow the data: they become the plain mean of the workers'. */
static const bm_filter mean = {.momentum = 0, .rate = 1};

size_t bm_exchange_chunks(size_t n)
{
    return (n + BM_SUM_CHUNK - 1) / BM_SUM_CHUNK;
}

/* ---- open and close ------------------------------------------------------ */

static void close_self(bm_exchange *e)
{
    if (e->ops != NULL)
        e->ops->close(e);
    e->ops = NULL;
    e->self = NULL;
}

static bm_status open_as(bm_exchange *e, const bm_exchange_ops *ops,
                         const bm_job *job)
{
    bm_status status = BM_OK;

    e->ops = ops;
    status = ops->open(e, job);
    if (status != BM_OK)
        close_self(e);
    return status;
}

static bm_status not_available(const bm_job *job, bm_status status)
{
    return BM_FAIL(status,
                   "job.exchange = %s is not available: %s; set it to "
                   "auto or host",
                   job->exchange, bm_last_message());
}

bm_status bm_exchange_check(const bm_job *job, bm_backend *be)
{
    bool nccl = strcmp(job->exchange, "nccl") == 0;
    int64_t device = 0;
    bm_status status = BM_OK;

    if (!nccl && strcmp(job->exchange, "mpi") != 0)
        return BM_OK;
    status = bm_exchange_check_device(job, be);
    if (status == BM_OK && nccl)
        status = bm_device_comm_load(be, &device);
    return status == BM_OK ? BM_OK : not_available(job, status);
}

/* Collective. With job.exchange = auto: by way of the host if devices cannot
 * exchange directly. */
static bm_status choose(bm_exchange *e, const bm_job *job)
{
    bool any = strcmp(job->exchange, "auto") == 0;
    bm_status status = BM_OK;

    if (e->code.ops != NULL)
        return open_as(e, &bm_exchange_coded, job);
    if (strcmp(job->exchange, "host") == 0 || (any && bm_on_host(e->be)))
        return open_as(e, &bm_exchange_host, job);
    status = open_as(e, &bm_exchange_device, job);
    if (status == BM_OK) {
        bm_log(BM_NOTE, "exchange: %s", e->transport);
        return BM_OK;
    }
    if (!any)
        return not_available(job, status);
    bm_log(BM_NOTE, "exchange: host, %s", bm_last_message());
    return open_as(e, &bm_exchange_host, job);
}

bm_status bm_exchange_open(bm_exchange **out, bm_comm *comm,
                           const bm_params *params, const bm_job *job,
                           bm_code code, bm_coded_mode mode)
{
    void *memory = NULL;
    bm_exchange *e = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_agreed_alloc(comm, sizeof *e, &memory));
    e = memory;
    e->be = params->be;
    e->comm = comm;
    e->params = params;
    e->n = params->n;
    e->code = code;
    e->mode = mode;
    e->workers = (size_t)job->workers;
    e->products =
        calloc(3 * bm_exchange_chunks(e->n) + e->workers, sizeof *e->products);
    if (e->products == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for an exchange");
    else
        e->squares = e->products + 3 * bm_exchange_chunks(e->n);
    BM_TRY_DONE(bm_comm_agree(comm, status));
    BM_TRY_DONE(choose(e, job));
    *out = e;
    e = NULL;
done:
    bm_exchange_close(e);
    return status;
}

void bm_exchange_close(bm_exchange *e)
{
    if (e == NULL)
        return;
    close_self(e);
    free(e->products);
    free(e);
}

const char *bm_exchange_transport(const bm_exchange *e)
{
    return e->transport;
}

/* ---- slices -------------------------------------------------------------- */

bm_backend *bm_exchange_backend(const bm_exchange *e)
{
    return e->ops->memory->on_backend ? e->be : NULL;
}

bm_slice bm_exchange_slice(const bm_exchange *e)
{
    return e->slice;
}

bm_status bm_exchange_alloc(bm_exchange *e, float **out)
{
    return e->ops->memory->alloc(e, out);
}

void bm_exchange_free(bm_exchange *e, float *slice)
{
    if (e != NULL)
        e->ops->memory->free(e, slice);
}

bm_status bm_exchange_cut(bm_exchange *e, const float *x, float *slice)
{
    e->ops->memory->cut(e, x, slice);
    return bm_sync(e->be);
}

void bm_exchange_scale(bm_exchange *e, float factor, float *slice)
{
    e->ops->memory->scale(e, factor, slice);
}

bm_status bm_exchange_gather(bm_exchange *e, const float *slice, float *x)
{
    return e->ops->gather(e, slice, x);
}

/* ---- the sum ------------------------------------------------------------- */

bm_status bm_exchange_add(bm_exchange *e, int worker, const float *x,
                          const float *from, double weight, bool *good)
{
    return e->ops->add(e, worker, x, from, weight, good);
}

bm_status bm_exchange_mean(bm_exchange *e, float *x)
{
    return e->ops->mean(e, x);
}

/* In chunks, so that sums stay exact enough. */
void bm_exchange_note(bm_exchange *e, int worker, double weight,
                      const float *change)
{
    size_t learned = weight > 0 ? e->params->n_learned : 0;
    double sum = 0;

    for (size_t i = 0; i < learned; i += BM_SUM_CHUNK) {
        size_t n = learned - i < BM_SUM_CHUNK ? learned - i : BM_SUM_CHUNK;
        double of[3] = {0};

        bm_filter_loops_here()->products(n, change + i, change + i, of);
        sum += of[0];
    }
    e->squares[worker] = weight * sum;
}

/* ---- the update ---------------------------------------------------------- */

void bm_exchange_apply(void *self, const bm_sum_piece *p)
{
    const bm_exchange *e = self;
    const bm_rule *r = e->rule;
    size_t n = bm_learned(e->params, p->offset, p->n);
    size_t at = p->offset - e->slice.offset;
    const float *delta = p->mean, *before = p->before;

    if (r->kind == BM_TAKE)
        memcpy(p->after, p->mean, p->n * sizeof *p->after);
    if (r->kind == BM_MOVE && r->model != NULL)
        before = r->model + at;
    for (size_t i = 0; r->kind == BM_MOVE && i < p->n; i++)
        p->after[i] = before[i] + p->mean[i];
    if (r->kind == BM_MOVE && r->model != NULL)
        memcpy(r->model + at, p->after, p->n * sizeof *p->after);
    if (r->kind == BM_FILTER) {
        float *model = r->model + at, *own = r->delta + at;

        bm_filter_block(r->filter, n, p->mean, model, own, p->after);
        bm_filter_block(&mean, p->n - n, p->mean + n, model + n, own + n,
                        p->after + n);
        delta = own;
    }
    if (r->kind != BM_TAKE)
        bm_filter_loops_here()->products(
            n, p->mean, delta, e->products + p->offset / BM_SUM_CHUNK * 3);
}

bm_status bm_exchange_update(bm_exchange *e, const bm_rule *rule,
                             double *weight)
{
    bm_span span = bm_span_begin("filter"); /* includes the sum */
    bm_status status = BM_OK;

    memset(e->products, 0, 3 * bm_exchange_chunks(e->n) * sizeof *e->products);
    e->rule = rule;
    status = e->ops->update(e, weight);
    e->weight = *weight;
    (void)bm_span_end(span);
    return status;
}

bm_status bm_exchange_products(bm_exchange *e, bm_products *out)
{
    size_t n = 3 * bm_exchange_chunks(e->n);
    bm_products sum = {0};

    /* One sum of both: squares lie behind products. */
    BM_TRY(bm_comm_sum(e->comm, e->products, n + e->workers));
    for (size_t k = 0; k < e->workers; k++)
        sum.workers += e->squares[k] / e->weight;
    memset(e->squares, 0, e->workers * sizeof *e->squares);
    for (const double *row = e->products; row < e->products + n; row += 3) {
        sum.aa += row[0];
        sum.ab += row[1];
        sum.bb += row[2];
    }
    *out = sum;
    return BM_OK;
}

/* ---- the common vector --------------------------------------------------- */

float *bm_exchange_common(const bm_exchange *e)
{
    return e->common;
}

bm_status bm_exchange_allgather(bm_exchange *e)
{
    return e->ops->allgather(e);
}

void bm_exchange_start_of(const bm_rule *r, size_t n, size_t learned,
                          const float *model, const float *delta, float *y)
{
    bm_filter_start(r->filter, learned, model, delta, y);
    bm_filter_start(&mean, n - learned, model + learned, delta + learned,
                    y + learned);
}

bm_status bm_exchange_start(bm_exchange *e, const bm_rule *rule,
                            const bm_filter *previous)
{
    return e->ops->start(e, rule, previous);
}

bm_status bm_exchange_begin(bm_exchange *e, const float *x)
{
    float *own = e->common + e->slice.offset;

    BM_TRY(bm_comm_agree(e->comm, bm_exchange_cut(e, x, own)));
    return bm_exchange_allgather(e);
}

void bm_exchange_fetch(bm_exchange *e, float *x)
{
    e->ops->fetch(e, x);
}

/* ---- states -------------------------------------------------------------- */

size_t bm_exchange_states(const bm_exchange *e)
{
    return e != NULL && e->ops->states != NULL ? e->ops->states(e) : 0;
}

size_t bm_exchange_state(const bm_exchange *e, bm_state *out)
{
    return e != NULL && e->ops->state != NULL ? e->ops->state(e, out) : 0;
}
