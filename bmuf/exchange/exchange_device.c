/* exchange_device.c - the exchange from device to device (device_sum.h). */
#include "bmuf/exchange/device_sum.h"
#include "bmuf/exchange/exchange_ops.h"
#include "comm/agreed_alloc.h"

#include <stdlib.h>
#include <string.h>

typedef struct device {
    bm_device_sum *sum;
    double *products; /* [chunks of the slice, 3] on the device */
} device;

/* ---- open and close ------------------------------------------------------ */

bm_status bm_exchange_check_device(const bm_job *job, const bm_backend *be)
{
    if (bm_on_host(be))
        return BM_FAIL(BM_ERR_CONFIG, "there is no device");
    if (bm_sum_traits_of(job->sum)->by_host)
        return BM_FAIL(BM_ERR_CONFIG,
                       "job.sum = %s adds up on the host; set job.sum = tree",
                       job->sum);
    return BM_OK;
}

static bm_status device_open(bm_exchange *e, const bm_job *job)
{
    static const char *const names[] = {[BM_TRANSPORT_NONE] = "device",
                                        [BM_TRANSPORT_DEVICE_COMM] = "nccl",
                                        [BM_TRANSPORT_MPI] = "mpi"};
    enum { A_DOUBLE = sizeof(double) / sizeof(float) };
    bm_transport by = BM_TRANSPORT_NONE;
    device *d = NULL;
    float *products = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_agreed_alloc(e->comm, sizeof *d, &e->self));
    d = e->self;
    BM_TRY(bm_exchange_check_device(job, e->be));
    if (strcmp(job->exchange, "mpi") == 0)
        by = BM_TRANSPORT_MPI;
    else if (strcmp(job->exchange, "nccl") == 0 || bm_comm_size(e->comm) > 1)
        by = BM_TRANSPORT_DEVICE_COMM;
    BM_TRY(bm_device_sum_open(&d->sum, e->comm, e->be, e->n, job, by));
    e->transport = names[by];
    e->slice.count = bm_device_sum_slice(d->sum, &e->slice.offset);
    e->common = bm_device_sum_common(d->sum);
    status = bm_alloc(e->be, 3 * A_DOUBLE * bm_exchange_chunks(e->slice.count),
                      &products);
    d->products = (double *)(void *)products;
    return bm_comm_agree(e->comm, status);
}

static void device_close(bm_exchange *e)
{
    device *d = e->self;

    if (d == NULL)
        return;
    bm_free(e->be, (float *)(void *)d->products);
    bm_device_sum_close(d->sum);
    free(d);
}

/* ---- slices on the backend ----------------------------------------------- */

static bm_status slice_alloc(bm_exchange *e, float **out)
{
    return bm_alloc(e->be, e->slice.count, out);
}

static void slice_free(bm_exchange *e, float *slice)
{
    bm_free(e->be, slice);
}

static void slice_cut(bm_exchange *e, const float *x, float *slice)
{
    bm_axpby(e->be, e->slice.count, 1, x + e->slice.offset, 0, slice);
}

static void slice_scale(bm_exchange *e, float factor, float *slice)
{
    bm_axpby(e->be, e->slice.count, factor, slice, 0, slice);
}

const bm_slice_memory bm_slices_on_backend = {
    .on_backend = true,
    .alloc = slice_alloc,
    .free = slice_free,
    .cut = slice_cut,
    .scale = slice_scale,
};

/* ---- the sum ------------------------------------------------------------- */

static bm_status device_add(bm_exchange *e, int worker, const float *x,
                            const float *from, double weight, bool *good)
{
    device *d = e->self;
    double square = 0;
    bm_status status = bm_device_sum_add(
        d->sum, worker, x, from, weight,
        from != NULL ? e->params->n_learned : 0, &square, good);

    e->squares[worker] = *good ? weight * square : 0;
    return status;
}

static bm_status device_gather(bm_exchange *e, const float *slice, float *x)
{
    device *d = e->self;

    bm_axpby(e->be, e->slice.count, 1, slice, 0, x + e->slice.offset);
    return bm_device_sum_allgather(d->sum, x);
}

static bm_status device_mean(bm_exchange *e, float *x)
{
    device *d = e->self;
    float *mean = NULL;
    double weight = 0;

    BM_TRY(bm_device_sum_mean(d->sum, &mean, &weight));
    bm_axpby(e->be, e->slice.count, weight > 0, mean, 0, x + e->slice.offset);
    return bm_device_sum_allgather(d->sum, x);
}

/* Queued: applies the rule to this rank's slice, whose mean is g. */
static void apply(bm_exchange *e, const float *g)
{
    const device *d = e->self;
    const bm_rule *r = e->rule;
    size_t at = e->slice.offset, n = e->slice.count;
    float *common = e->common + at;
    bm_filter_step step = {.n_learned = bm_learned(e->params, at, n)};

    if (r->kind == BM_TAKE) {
        bm_axpby(e->be, n, 1, g, 0, common);
        return;
    }
    if (r->kind == BM_FILTER) {
        step.eta = r->filter->momentum;
        step.zeta = r->filter->rate;
        step.ahead = r->filter->nesterov ? step.eta : 0;
        step.model = r->model;
        step.delta = r->delta;
    }
    bm_filter_slice(e->be, &step, n, g, common, d->products);
    bm_get(e->be, (float *)(void *)(e->products + at / BM_SUM_CHUNK * 3),
           (const float *)(const void *)d->products,
           3 * bm_exchange_chunks(n) * sizeof *d->products / sizeof(float));
}

static bm_status device_allgather(bm_exchange *e)
{
    device *d = e->self;
    return bm_device_sum_allgather(d->sum, e->common);
}

static bm_status device_update(bm_exchange *e, double *weight)
{
    device *d = e->self;
    float *g = NULL;

    BM_TRY(bm_device_sum_mean(d->sum, &g, weight));
    if (*weight == 0)
        return BM_OK;
    apply(e, g);
    return device_allgather(e);
}

/* ---- the common vector --------------------------------------------------- */

static void device_fetch(bm_exchange *e, float *x)
{
    bm_axpby(e->be, e->n, 1, e->common, 0, x);
}

static bm_status device_start(bm_exchange *e, const bm_rule *rule,
                              const bm_filter *previous)
{
    size_t at = e->slice.offset, n = e->slice.count;
    float *host = malloc((2 * n + 1) * sizeof *host);
    bm_status status = BM_OK;

    (void)previous;
    if (host == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu floats", n);
    bm_get(e->be, host, rule->model, n);
    bm_get(e->be, host + n, rule->delta, n);
    BM_TRY_DONE(bm_sync(e->be));
    bm_exchange_start_of(rule, n, bm_learned(e->params, at, n), host, host + n,
                         host);
    bm_put(e->be, e->common + at, host, n);
    status = bm_sync(e->be);
done:
    free(host);
    return status;
}

const bm_exchange_ops bm_exchange_device = {
    .memory = &bm_slices_on_backend,
    .open = device_open,
    .close = device_close,
    .add = device_add,
    .mean = device_mean,
    .update = device_update,
    .allgather = device_allgather,
    .gather = device_gather,
    .fetch = device_fetch,
    .start = device_start,
};
