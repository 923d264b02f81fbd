#include "bmuf/exchange/exchange.h"

#include "bmuf/exchange/device_sum.h"
#include "bmuf/exchange/host_sum.h"
#include "bmuf/filter_loops.h"
#include "core/log.h"
#include "core/span.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)BM_FILTER_CHUNK == (int)BM_SUM_CHUNK, "chunks are one");

/* Statistics follow the data: they become the plain mean of the workers'. */
static const bm_filter mean = {.momentum = 0, .rate = 1};

struct bm_exchange {
    bm_backend *be;          /* borrowed */
    bm_comm *comm;           /* borrowed */
    const bm_params *params; /* borrowed */
    size_t n;
    double *part; /* [chunks of n, 3]: products of each chunk */

    bm_device_sum *device; /* NULL: the host sums */
    double *products;      /* [chunks of the slice, 3] on the device */

    bm_host_sum *host;   /* NULL: the device sums */
    const bm_rule *rule; /* of the update at hand */
};

static size_t chunks(size_t n)
{
    return (n + BM_SUM_CHUNK - 1) / BM_SUM_CHUNK;
}

static bool is(const char *word, const char *other)
{
    return strcmp(word, other) == 0;
}

/* ---- where the sum is ---------------------------------------------------- */

/* Collective. From device to device, if that can be. */
static bm_status open_device(bm_exchange *e, const bm_job *job)
{
    enum { A_DOUBLE = sizeof(double) / sizeof(float) };
    bool meshed = is(job->exchange, "nccl") || bm_comm_size(e->comm) > 1;
    bm_carrier by = is(job->exchange, "mpi") ? BM_BY_MPI
                    : meshed                 ? BM_BY_DEVICE_COMM
                                             : BM_BY_NOTHING;
    bm_device_sum *d = NULL;
    size_t offset = 0, count = 0;
    float *products = NULL;
    bm_status status = BM_OK;

    if (bm_on_host(e->be))
        return BM_FAIL(BM_ERR_CONFIG, "there is no device");
    if (!is(job->sum, "tree"))
        return BM_FAIL(BM_ERR_CONFIG, "devices sum in tree mode alone");
    BM_TRY(bm_device_sum_open(&d, e->comm, e->be, e->n, (int)job->workers,
                              job->coordinator, by));
    count = bm_device_sum_slice(d, &offset);
    status = bm_comm_agree(
        e->comm, bm_alloc(e->be, 3 * A_DOUBLE * chunks(count), &products));
    if (status == BM_OK) {
        e->products = (double *)(void *)products;
        e->device = d;
    } else {
        bm_free(e->be, products);
        bm_device_sum_close(d);
    }
    return status;
}

static bm_status open_either(bm_exchange *e, const bm_job *job)
{
    bm_status status = BM_OK;

    if (is(job->exchange, "host") ||
        (is(job->exchange, "auto") && bm_on_host(e->be)))
        return bm_host_sum_open(&e->host, e->comm, e->be, e->n, job);
    status = open_device(e, job);
    if (status == BM_OK) {
        bm_log(BM_NOTE, "exchange: %s", bm_exchange_way(e));
        return BM_OK;
    }
    if (!is(job->exchange, "auto"))
        return BM_FAIL(status, "job.exchange: %s cannot be had: %s",
                       job->exchange, bm_last_message());
    bm_log(BM_NOTE, "exchange: host, %s", bm_last_message());
    return bm_host_sum_open(&e->host, e->comm, e->be, e->n, job);
}

bm_status bm_exchange_open(bm_exchange **out, bm_comm *comm,
                           const bm_params *params, const bm_job *job)
{
    bm_exchange *e = calloc(1, sizeof *e);
    bm_status status = BM_OK;

    if (e == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an exchange");
    e->be = params->be;
    e->comm = comm;
    e->params = params;
    e->n = params->n;
    e->part = malloc(3 * (chunks(e->n) + 1) * sizeof *e->part);
    if (e->part == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for an exchange");
    BM_TRY_DONE(bm_comm_agree(comm, status));
    BM_TRY_DONE(open_either(e, job));
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
    bm_host_sum_close(e->host);
    bm_device_sum_close(e->device);
    bm_free(e->be, (float *)(void *)e->products);
    free(e->part);
    free(e);
}

void bm_exchange_code(bm_exchange *e, bm_coded_sum *coded)
{
    BM_ASSERT(e->device == NULL);
    bm_host_sum_code(e->host, coded);
}

bm_coded_sum *bm_exchange_coded(const bm_exchange *e)
{
    return e != NULL && e->host != NULL ? bm_host_sum_coded(e->host) : NULL;
}

void bm_exchange_apart(bm_exchange *e)
{
    BM_ASSERT(e->device == NULL);
    bm_host_sum_apart(e->host);
}

const char *bm_exchange_way(const bm_exchange *e)
{
    static const char *const ways[] = {[BM_BY_NOTHING] = "device",
                                       [BM_BY_DEVICE_COMM] = "nccl",
                                       [BM_BY_MPI] = "mpi"};

    return e->device == NULL ? "host" : ways[bm_device_sum_carrier(e->device)];
}

/* ---- slices -------------------------------------------------------------- */

bm_backend *bm_exchange_memory(const bm_exchange *e)
{
    return e->device != NULL ? e->be : NULL;
}

bm_slice bm_exchange_slice(const bm_exchange *e)
{
    bm_slice s = {0};

    if (e->host != NULL)
        return bm_host_sum_slice(e->host);
    s.count = bm_device_sum_slice(e->device, &s.offset);
    return s;
}

bm_status bm_exchange_alloc(bm_exchange *e, float **out)
{
    size_t count = bm_exchange_slice(e).count;
    float *x = NULL;

    if (e->device != NULL)
        return bm_alloc(e->be, count, out);
    x = calloc(count + 1, sizeof *x);
    if (x == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to filter %zu floats", count);
    *out = x;
    return BM_OK;
}

void bm_exchange_free(bm_exchange *e, float *part)
{
    if (e != NULL && e->device != NULL)
        bm_free(e->be, part);
    else
        free(part);
}

bm_status bm_exchange_cut(bm_exchange *e, const float *x, float *part)
{
    bm_slice own = bm_exchange_slice(e);

    if (e->device != NULL)
        bm_axpby(e->be, own.count, 1, x + own.offset, 0, part);
    else
        bm_get(e->be, part, x + own.offset, own.count);
    return bm_sync(e->be);
}

void bm_exchange_scale(bm_exchange *e, size_t n, float factor, float *part)
{
    if (e->device != NULL)
        bm_axpby(e->be, n, factor, part, 0, part);
    for (size_t i = 0; e->device == NULL && i < n; i++)
        part[i] *= factor;
}

bm_status bm_exchange_gather(bm_exchange *e, const float *part, float *x)
{
    bm_slice own = bm_exchange_slice(e);

    if (e->host != NULL)
        return bm_host_sum_gather(e->host, part, x);
    bm_axpby(e->be, own.count, 1, part, 0, x + own.offset);
    return bm_device_sum_share(e->device, x);
}

/* ---- the sum ------------------------------------------------------------- */

bm_status bm_exchange_add(bm_exchange *e, int worker, const float *x,
                          const float *from, double weight, bool *good)
{
    if (e->host != NULL)
        return bm_host_sum_add(e->host, worker, x, from, weight, good);
    return bm_device_sum_add(e->device, worker, x, from, weight, good);
}

bm_status bm_exchange_mean(bm_exchange *e, float *x)
{
    bm_slice own = bm_exchange_slice(e);
    float *part = NULL;
    double weight = 0;

    if (e->host != NULL)
        return bm_host_sum_mean(e->host, x);
    BM_TRY(bm_device_sum_mean(e->device, &part, &weight));
    bm_axpby(e->be, own.count, weight > 0, part, 0, x + own.offset);
    return bm_device_sum_share(e->device, x);
}

/* ---- the update ---------------------------------------------------------- */

/* Of one piece. */
static void work(void *self, const bm_piece *p)
{
    const bm_exchange *e = self;
    const bm_rule *r = e->rule;
    size_t n = bm_learned(e->params, p->offset, p->n);
    size_t at = p->offset - bm_exchange_slice(e).offset;
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
            n, p->mean, delta, e->part + p->offset / BM_SUM_CHUNK * 3);
}

/* Queued: of this rank's slice, of which g is the mean. */
static void update_device(bm_exchange *e, const bm_rule *r, const float *g)
{
    bm_slice own = bm_exchange_slice(e);
    float *common = bm_device_sum_common(e->device) + own.offset;
    bm_filter_step step = {.n_learned =
                               bm_learned(e->params, own.offset, own.count)};

    if (r->kind == BM_TAKE) {
        bm_axpby(e->be, own.count, 1, g, 0, common);
        return;
    }
    if (r->kind == BM_FILTER) {
        step.eta = r->filter->momentum;
        step.zeta = r->filter->rate;
        step.ahead = r->filter->nesterov ? step.eta : 0;
        step.model = r->model;
        step.delta = r->delta;
    }
    bm_filter_slice(e->be, &step, own.count, g, common, e->products);
    bm_get(e->be, (float *)(void *)(e->part + own.offset / BM_SUM_CHUNK * 3),
           (const float *)(const void *)e->products,
           3 * chunks(own.count) * sizeof *e->part / sizeof(float));
}

static bm_status update(bm_exchange *e, const bm_rule *rule, double *weight)
{
    float *g = NULL;

    memset(e->part, 0, 3 * chunks(e->n) * sizeof *e->part);
    e->rule = rule;
    if (e->host != NULL)
        return bm_host_sum_update(e->host, work, e, weight);
    BM_TRY(bm_device_sum_mean(e->device, &g, weight));
    if (*weight == 0)
        return BM_OK;
    update_device(e, rule, g);
    return bm_exchange_share(e);
}

bm_status bm_exchange_update(bm_exchange *e, const bm_rule *rule,
                             double *weight)
{
    bm_span span = bm_span_begin("filter"); /* and the sum: they are one */
    bm_status status = update(e, rule, weight);

    (void)bm_span_end(span);
    return status;
}

bm_status bm_exchange_products(bm_exchange *e, bm_products *out)
{
    bm_products sum = {0};

    BM_TRY(bm_comm_sum(e->comm, e->part, 3 * chunks(e->n)));
    for (size_t c = 0; c < chunks(e->n); c++) {
        sum.aa += e->part[3 * c];
        sum.ab += e->part[3 * c + 1];
        sum.bb += e->part[3 * c + 2];
    }
    *out = sum;
    return BM_OK;
}

/* ---- the common vector --------------------------------------------------- */

float *bm_exchange_common(const bm_exchange *e)
{
    return e->host != NULL ? bm_host_sum_common(e->host)
                           : bm_device_sum_common(e->device);
}

bm_status bm_exchange_share(bm_exchange *e)
{
    if (e->host != NULL)
        return bm_host_sum_share(e->host);
    return bm_device_sum_share(e->device, bm_exchange_common(e));
}

static void start(const bm_rule *r, size_t n, size_t learned,
                  const float *model, const float *delta, float *y)
{
    bm_filter_start(r->filter, learned, model, delta, y);
    bm_filter_start(&mean, n - learned, model + learned, delta + learned,
                    y + learned);
}

bm_status bm_exchange_start(bm_exchange *e, const bm_rule *rule)
{
    bm_slice own = bm_exchange_slice(e);
    size_t n = own.count, learned = bm_learned(e->params, own.offset, n);
    float *y = bm_exchange_common(e) + own.offset, *host = NULL;
    bm_status status = BM_OK;

    if (bm_exchange_coded(e) != NULL)
        return BM_OK;
    if (e->device == NULL) {
        start(rule, n, learned, rule->model, rule->delta, y);
        return BM_OK;
    }
    host = malloc((2 * n + 1) * sizeof *host);
    if (host == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu floats", n);
    bm_get(e->be, host, rule->model, n);
    bm_get(e->be, host + n, rule->delta, n);
    BM_TRY_DONE(bm_sync(e->be));
    start(rule, n, learned, host, host + n, host);
    bm_put(e->be, y, host, n);
    status = bm_sync(e->be);
done:
    free(host);
    return status;
}

bm_status bm_exchange_begin(bm_exchange *e, const float *x)
{
    bm_slice own = bm_exchange_slice(e);

    BM_TRY(bm_comm_agree(
        e->comm, bm_exchange_cut(e, x, bm_exchange_common(e) + own.offset)));
    return bm_exchange_share(e);
}

void bm_exchange_fetch(bm_exchange *e, float *x)
{
    if (e->host != NULL)
        bm_host_sum_fetch(e->host, x);
    else
        bm_axpby(e->be, e->n, 1, bm_device_sum_common(e->device), 0, x);
}

void bm_exchange_limit(bm_exchange *e, size_t n)
{
    if (e->host != NULL)
        bm_host_sum_limit(e->host, n);
}
