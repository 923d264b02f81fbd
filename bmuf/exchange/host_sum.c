#include "bmuf/exchange/host_sum.h"

#include "bmuf/filter_loops.h"
#include "core/finite.h"
#include "core/stream.h"

#include <stdlib.h>
#include <string.h>

struct bm_host_sum {
    bm_comm *comm;  /* borrowed */
    bm_backend *be; /* borrowed */
    size_t n;
    bm_sum *sum;
    bm_coded_sum *coded; /* NULL: nothing is coded */

    bm_async_copy *async_copy; /* NULL: vectors are the host's */
    float *change;             /* [n] and [1] on the device */
    float *odd;
    float *copy; /* [n] of the common vector on the device */
    bool copied;
    bool late;  /* `change` is on its way into the sum */
    bool apart; /* updates keep away from the backend */
    float *pinned[2];
    bm_status failed; /* on the way, in an update */
};

/* ---- open and close ------------------------------------------------------ */

static void pin(bm_host_sum *h)
{
    h->pinned[0] = bm_sum_room(h->sum);
    h->pinned[1] = bm_sum_common(h->sum);
    bm_pin(h->be, h->pinned[0], bm_sum_rooms(h->sum) * h->n * sizeof(float));
    bm_pin(h->be, h->pinned[1], h->n * sizeof(float));
}

static bm_status open_device(bm_host_sum *h)
{
    if (bm_on_host(h->be))
        return BM_OK;
    BM_TRY(bm_alloc(h->be, h->n, &h->change));
    BM_TRY(bm_alloc(h->be, h->n, &h->copy));
    BM_TRY(bm_alloc(h->be, 1, &h->odd));
    BM_TRY(bm_async_copy_open(&h->async_copy, h->be));
    pin(h);
    return BM_OK;
}

bm_status bm_host_sum_open(bm_host_sum **out, bm_comm *comm, bm_backend *be,
                           size_t n, const bm_job *job)
{
    bm_host_sum *h = calloc(1, sizeof *h);
    bm_status status = BM_OK;

    if (h == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an exchange");
    h->comm = comm;
    h->be = be;
    h->n = n;
    BM_TRY_DONE(bm_sum_open(&h->sum, comm, n, (int)job->workers, job->sum,
                            job->coordinator, job->topology));
    BM_TRY_DONE(bm_comm_agree(comm, open_device(h)));
    *out = h;
    h = NULL;
done:
    bm_host_sum_close(h);
    return status;
}

void bm_host_sum_close(bm_host_sum *h)
{
    if (h == NULL)
        return;
    bm_async_copy_close(h->async_copy);
    for (int i = 0; i < 2; i++)
        if (h->pinned[i] != NULL)
            bm_unpin(h->be, h->pinned[i]);
    bm_coded_sum_close(h->coded);
    bm_sum_close(h->sum);
    bm_free(h->be, h->change);
    bm_free(h->be, h->odd);
    bm_free(h->be, h->copy);
    free(h);
}

void bm_host_sum_code(bm_host_sum *h, bm_coded_sum *coded)
{
    BM_ASSERT(h->coded == NULL);
    h->coded = coded;
}

bm_coded_sum *bm_host_sum_coded(const bm_host_sum *h)
{
    return h->coded;
}

void bm_host_sum_apart(bm_host_sum *h)
{
    h->apart = true;
}

void bm_host_sum_limit(bm_host_sum *h, size_t n)
{
    bm_sum_limit(h->sum, n);
}

bm_slice bm_host_sum_slice(const bm_host_sum *h)
{
    return h->coded != NULL ? bm_coded_sum_slice(h->coded)
                            : bm_sum_slice(h->sum);
}

/* ---- a worker's vector --------------------------------------------------- */

/* y = a - b, or a with b = NULL. Are they numbers, all of them? */
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

/* The same on the device: whether they are, is known long before they come. */
static bm_status subtract_there(bm_host_sum *h, const float *x,
                                const float *from, bool *good)
{
    float odd = 0;
    bm_status status = BM_OK;

    bm_difference(h->be, h->n, x, from != NULL ? h->copy : NULL, h->change,
                  h->odd);
    bm_get(h->be, &odd, h->odd, 1);
    status = bm_sync(h->be);
    *good = odd == 0;
    return status;
}

/* In the order in which an update asks for them. */
static void set_off(bm_host_sum *h, int worker, double weight)
{
    float *room = bm_sum_room(h->sum);
    size_t at = 0, n = 0;

    for (size_t r = 0; r < bm_sum_rounds(h->sum); r++)
        for (int k = 0; k < bm_comm_size(h->comm); k++) {
            bm_sum_part(h->sum, r, k, &at, &n);
            if (n > 0)
                bm_async_copy_get(h->async_copy, r, room + at, h->change + at,
                                  n);
        }
    bm_sum_add_late(h->sum, worker, weight);
    h->late = true;
}

/* The one that is late is added: a piece while the next ones come. */
static bm_status settle(bm_host_sum *h)
{
    bm_status status = BM_OK;

    for (size_t r = 0; h->late && r < bm_sum_rounds(h->sum); r++) {
        bm_keep_first(&status, bm_async_copy_wait(h->async_copy, r));
        bm_sum_come(h->sum, r);
    }
    h->late = false;
    return status;
}

static bm_status add_from_device(bm_host_sum *h, int worker, const float *x,
                                 const float *from, double weight, bool coded,
                                 bool *good)
{
    bm_status status = settle(h);
    float *room = bm_sum_room(h->sum);

    *good = true;
    if (weight > 0 && status == BM_OK)
        status = subtract_there(h, x, from, good);
    if (!*good || status != BM_OK)
        weight = 0;
    if (weight > 0 && !coded) {
        set_off(h, worker, weight);
        return h->apart ? settle(h) : BM_OK;
    }
    if (weight > 0) {
        bm_get(h->be, room, h->change, h->n);
        status = bm_sync(h->be);
    }
    if (!coded)
        bm_sum_add(h->sum, worker, room, weight);
    else if (!bm_coded_sum_add(h->coded, worker, room,
                               status == BM_OK ? weight : 0))
        *good = false;
    return status;
}

bm_status bm_host_sum_add(bm_host_sum *h, int worker, const float *x,
                          const float *from, double weight, bool *good)
{
    bool coded = h->coded != NULL &&
                 (from != NULL || bm_coded_sum_way(h->coded) == BM_CODED_NEW);
    float *room = NULL;
    bm_status status = BM_OK;

    if (h->async_copy != NULL)
        return add_from_device(h, worker, x, from, weight, coded, good);
    room = bm_sum_room(h->sum);
    *good = true;
    status = bm_sync(h->be);
    if (weight > 0 && status == BM_OK)
        *good = subtract(h->n, x, from, room);
    if (!*good || status != BM_OK)
        weight = 0;
    if (!coded)
        bm_sum_add(h->sum, worker, room, weight);
    else if (!bm_coded_sum_add(h->coded, worker, room, weight))
        *good = false;
    return status;
}

/* ---- what becomes of all of them ----------------------------------------- */

/* Collective. The slices that lie in the sum's memory, or these. */
static bm_status gather(bm_host_sum *h, const float *part, float *x)
{
    float *host = h->async_copy != NULL ? bm_sum_room(h->sum) : x;

    if (part != NULL)
        BM_TRY(bm_coded_sum_gather(h->coded, part, host));
    else
        BM_TRY(bm_sum_gather(h->sum, host));
    if (host != x)
        bm_put(h->be, x, host, h->n);
    return bm_sync(h->be);
}

bm_status bm_host_sum_gather(bm_host_sum *h, const float *part, float *x)
{
    bm_slice own = bm_host_sum_slice(h);

    BM_ASSERT(!h->late);
    if (h->coded != NULL)
        return gather(h, part, x);
    memcpy(own.x, part, own.count * sizeof *own.x);
    return gather(h, NULL, x);
}

bm_status bm_host_sum_mean(bm_host_sum *h, float *x)
{
    bm_slice own;

    if (h->async_copy != NULL)
        BM_TRY(bm_comm_agree(h->comm, settle(h)));
    BM_TRY(bm_sum_scatter(h->sum, &own));
    return gather(h, NULL, x);
}

static void bring(void *self, size_t round)
{
    bm_host_sum *h = self;

    if (h->late)
        bm_keep_first(&h->failed, bm_async_copy_wait(h->async_copy, round));
}

static void take(void *self, size_t offset, size_t n)
{
    bm_host_sum *h = self;

    bm_async_copy_put(h->async_copy, h->copy + offset,
                      bm_sum_common(h->sum) + offset, n);
}

bm_status bm_host_sum_update(bm_host_sum *h, bm_sum_work *work, void *self,
                             double *weight)
{
    const bm_sum_flow flow = {bring, take, h};

    h->copied = false;
    if (h->coded != NULL)
        return bm_coded_sum_update(h->coded, work, self, weight);
    if (h->async_copy == NULL || h->apart)
        return bm_sum_update(h->sum, work, self, weight);
    h->failed = BM_OK;
    BM_TRY(bm_sum_update_in_rounds(h->sum, work, self, &flow, weight));
    h->late = false;
    h->copied = *weight > 0;
    bm_async_copy_join(h->async_copy);
    return bm_comm_agree(h->comm, h->failed);
}

/* ---- the common vector --------------------------------------------------- */

float *bm_host_sum_common(const bm_host_sum *h)
{
    return h->coded != NULL ? bm_coded_sum_common(h->coded)
                            : bm_sum_common(h->sum);
}

bm_status bm_host_sum_share(bm_host_sum *h)
{
    h->copied = false;
    return h->coded != NULL ? bm_coded_sum_share(h->coded)
                            : bm_sum_share(h->sum);
}

void bm_host_sum_fetch(bm_host_sum *h, float *x)
{
    const float *common = bm_host_sum_common(h);

    if (h->async_copy == NULL) {
        bm_put(h->be, x, common, h->n);
        return;
    }
    if (!h->copied)
        bm_put(h->be, h->copy, common, h->n);
    h->copied = true;
    bm_axpby(h->be, h->n, 1, h->copy, 0, x);
}
