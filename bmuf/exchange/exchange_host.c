/*
 * exchange_host.c - the exchange by way of the host: the ordered sum of
 * comm/sum/sum.h. A device computes x - from and checks that it is finite; then
 * the change is copied to pinned memory of the host. The common vector is
 * copied to the device once an update.
 */
#include "bmuf/exchange/exchange_host.h"

#include "bmuf/exchange/exchange_ops.h"
#include "bmuf/filter_loops.h"
#include "comm/agreed_alloc.h"
#include "core/finite.h"
#include "core/stream.h"

#include <stdlib.h>
#include <string.h>

typedef struct host {
    bm_sum *sum;

    /* of a backend whose memory is not the host's */
    bool on_device;
    float *change;     /* [n] on the device: x - from */
    float *non_finite; /* [1] on the device: numbers that are not finite */
    float *copy;       /* [n] on the device: the common vector */
    bool copied;
    float *pinned[2];
} host;

/* ---- open and close ------------------------------------------------------ */

static bm_status open_device(const bm_exchange *e, host *h)
{
    if (bm_on_host(e->be))
        return BM_OK;
    h->on_device = true;
    BM_TRY(bm_alloc(e->be, e->n, &h->change));
    BM_TRY(bm_alloc(e->be, e->n, &h->copy));
    BM_TRY(bm_alloc(e->be, 1, &h->non_finite));
    h->pinned[0] = bm_sum_room(h->sum);
    h->pinned[1] = bm_sum_common(h->sum);
    bm_pin(e->be, h->pinned[0], bm_sum_rooms(h->sum) * e->n * sizeof(float));
    bm_pin(e->be, h->pinned[1], e->n * sizeof(float));
    return BM_OK;
}

static bm_status host_open(bm_exchange *e, const bm_job *job)
{
    host *h = NULL;

    BM_TRY(bm_agreed_alloc(e->comm, sizeof *h, &e->self));
    h = e->self;
    BM_TRY(bm_sum_open(&h->sum, e->comm, e->n, (int)job->workers, job->sum,
                       job->coordinator, job->topology));
    BM_TRY(bm_comm_agree(e->comm, open_device(e, h)));
    e->transport = "host";
    e->slice = bm_sum_slice(h->sum);
    e->common = bm_sum_common(h->sum);
    return BM_OK;
}

static void host_close(bm_exchange *e)
{
    host *h = e->self;

    if (h == NULL)
        return;
    for (int i = 0; i < 2; i++)
        if (h->pinned[i] != NULL)
            bm_unpin(e->be, h->pinned[i]);
    bm_sum_close(h->sum);
    bm_free(e->be, h->change);
    bm_free(e->be, h->non_finite);
    bm_free(e->be, h->copy);
    free(h);
}

/* ---- between the backend and the host ------------------------------------ */

float *bm_exchange_host_room(const bm_exchange *e)
{
    const host *h = e->self;
    return bm_sum_room(h->sum);
}

/* y = a - b, or a with b = NULL. True if all of it is finite. */
static bool subtract(size_t n, const float *a, const float *b, float *y)
{
    float piece[BM_SUM_CHUNK];
    bool good = true;

    for (size_t i = 0; i < n; i += BM_SUM_CHUNK) {
        size_t m = n - i < BM_SUM_CHUNK ? n - i : BM_SUM_CHUNK;

        if (b == NULL)
            good = bm_all_finite(a + i, m) && good;
        else
            good = bm_filter_loops_here()->subtract(m, a + i, b + i, piece) &&
                   good;
        bm_stream(m, b == NULL ? a + i : piece, y + i);
    }
    bm_stream_end();
    return good;
}

static bm_status subtract_on_device(bm_exchange *e, const float *x,
                                    const float *from, float *room, bool *good)
{
    host *h = e->self;
    float non_finite = 0;

    bm_difference(e->be, e->n, x, from != NULL ? h->copy : NULL, h->change,
                  h->non_finite);
    bm_get(e->be, &non_finite, h->non_finite, 1);
    BM_TRY(bm_sync(e->be));
    *good = non_finite == 0;
    if (!*good)
        return BM_OK;
    bm_get(e->be, room, h->change, e->n);
    return bm_sync(e->be);
}

bm_status bm_exchange_host_difference(bm_exchange *e, const float *x,
                                      const float *from, bool wanted,
                                      float *room, bool *good)
{
    const host *h = e->self;

    *good = true;
    if (h->on_device)
        return wanted ? subtract_on_device(e, x, from, room, good) : BM_OK;
    BM_TRY(bm_sync(e->be));
    if (wanted)
        *good = subtract(e->n, x, from, room);
    return BM_OK;
}

void bm_exchange_host_fetch(bm_exchange *e, const float *common, float *x)
{
    host *h = e->self;

    if (!h->on_device) {
        bm_put(e->be, x, common, e->n);
        return;
    }
    if (!h->copied)
        bm_put(e->be, h->copy, common, e->n);
    h->copied = true;
    bm_axpby(e->be, e->n, 1, h->copy, 0, x);
}

void bm_exchange_host_changed(bm_exchange *e)
{
    host *h = e->self;
    h->copied = false;
}

/* ---- slices on the host -------------------------------------------------- */

static bm_status slice_alloc(bm_exchange *e, float **out)
{
    size_t count = e->slice.count;
    float *x = calloc(count + 1, sizeof *x);

    if (x == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to filter %zu floats", count);
    *out = x;
    return BM_OK;
}

static void slice_free(bm_exchange *e, float *slice)
{
    (void)e;
    free(slice);
}

static void slice_cut(bm_exchange *e, const float *x, float *slice)
{
    bm_get(e->be, slice, x + e->slice.offset, e->slice.count);
}

static void slice_scale(bm_exchange *e, float factor, float *slice)
{
    for (size_t i = 0; i < e->slice.count; i++)
        slice[i] *= factor;
}

const bm_slice_memory bm_slices_on_host = {
    .alloc = slice_alloc,
    .free = slice_free,
    .cut = slice_cut,
    .scale = slice_scale,
};

/* ---- the sum ------------------------------------------------------------- */

static bm_status host_add(bm_exchange *e, int worker, const float *x,
                          const float *from, double weight, bool *good)
{
    host *h = e->self;
    float *room = bm_sum_room(h->sum);
    bm_status status =
        bm_exchange_host_difference(e, x, from, weight > 0, room, good);

    if (!*good || status != BM_OK)
        weight = 0;
    bm_exchange_note(e, worker, from != NULL ? weight : 0, room);
    bm_sum_add(h->sum, worker, room, weight);
    return status;
}

/* Collective. x on the backend = the slices in the sum's memory. */
static bm_status gather_slices(bm_exchange *e, float *x)
{
    host *h = e->self;
    float *to = h->on_device ? bm_sum_room(h->sum) : x;

    BM_TRY(bm_sum_gather(h->sum, to));
    if (to != x)
        bm_put(e->be, x, to, e->n);
    return bm_sync(e->be);
}

static bm_status host_gather(bm_exchange *e, const float *slice, float *x)
{
    host *h = e->self;
    bm_slice own = bm_sum_slice(h->sum);

    memcpy(own.x, slice, own.count * sizeof *own.x);
    return gather_slices(e, x);
}

static bm_status host_mean(bm_exchange *e, float *x)
{
    host *h = e->self;
    bm_slice own;

    BM_TRY(bm_sum_scatter(h->sum, &own));
    return gather_slices(e, x);
}

static bm_status host_update(bm_exchange *e, double *weight)
{
    host *h = e->self;

    h->copied = false;
    return bm_sum_update(h->sum, bm_exchange_apply, e, weight);
}

/* ---- the common vector --------------------------------------------------- */

static bm_status host_allgather(bm_exchange *e)
{
    host *h = e->self;

    h->copied = false;
    return bm_sum_allgather(h->sum);
}

static void host_fetch(bm_exchange *e, float *x)
{
    bm_exchange_host_fetch(e, e->common, x);
}

static bm_status host_start(bm_exchange *e, const bm_rule *rule,
                            const bm_filter *previous)
{
    size_t at = e->slice.offset, n = e->slice.count;

    (void)previous;
    bm_exchange_start_of(rule, n, bm_learned(e->params, at, n), rule->model,
                         rule->delta, e->common + at);
    return BM_OK;
}

const bm_exchange_ops bm_exchange_host = {
    .memory = &bm_slices_on_host,
    .open = host_open,
    .close = host_close,
    .add = host_add,
    .mean = host_mean,
    .update = host_update,
    .allgather = host_allgather,
    .gather = host_gather,
    .fetch = host_fetch,
    .start = host_start,
};
