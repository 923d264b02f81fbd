#include "bmuf/exchange/device_sum.h"

#include "comm/sum/sum.h"
#include "comm/tree.h"
#include "compute/device_comm.h"

#include <stdlib.h>
#include <string.h>

struct bm_device_sum {
    bm_comm *comm;  /* borrowed */
    bm_backend *be; /* borrowed */
    int rank, size;
    size_t n;
    int workers;
    double *weight;  /* [workers + 1]: the last one counts failures */
    int64_t *device; /* [size]: of every rank */
    size_t *start;   /* [size + 1]: rank r owns [start[r], start[r + 1]) */
    bm_tree_plan plan;
    bm_tree mine;  /* of the workers hosted here */
    float *room;   /* [plan.deepest, n]: their vectors */
    float *inbox;  /* [nodes of other ranks, count]: slices */
    float *common; /* [n] */
    float *odd;    /* [1] */
    bm_carrier by;
    bool joined; /* the mesh */
};

static size_t count(const bm_device_sum *d, int rank)
{
    return d->start[rank + 1] - d->start[rank];
}

/* What a rank is left with of its workers. */
static int nodes(const bm_device_sum *d, int rank)
{
    return d->plan.first[rank + 1] - d->plan.first[rank];
}

static float *room(const bm_device_sum *d, int depth)
{
    return d->room + (size_t)depth * d->n;
}

/* What this rank can do by itself. */
static bm_status prepare(bm_device_sum *d, const char *coordinator)
{
    int others = 0;

    if (d->workers < d->size)
        return BM_FAIL(BM_ERR_CONFIG,
                       "%d ranks are too many: there are %d workers", d->size,
                       d->workers);
    d->weight = calloc((size_t)d->workers + 1, sizeof *d->weight);
    d->start = calloc((size_t)d->size + 1, sizeof *d->start);
    if (d->weight == NULL || d->start == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d workers", d->workers);
    BM_TRY(bm_slices_cut(d->n, d->size, coordinator, d->start));
    BM_TRY(bm_tree_plan_make(&d->plan, d->workers, d->size, d->rank));
    others = d->plan.first[d->size] - nodes(d, d->rank);
    BM_TRY(bm_alloc(d->be, (size_t)d->plan.deepest * d->n, &d->room));
    BM_TRY(bm_alloc(d->be, (size_t)others * count(d, d->rank), &d->inbox));
    BM_TRY(bm_alloc(d->be, d->n, &d->common));
    BM_TRY(bm_alloc(d->be, 1, &d->odd));
    d->device = calloc((size_t)d->size, sizeof *d->device);
    if (d->device == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d ranks", d->size);
    if (d->by == BM_BY_DEVICE_COMM)
        return bm_device_comm_load(d->be, &d->device[d->rank]);
    if (d->by == BM_BY_MPI && !bm_comm_takes_devices(d->comm))
        return BM_FAIL(BM_ERR_UNSUPPORTED,
                       "the MPI library does not take devices' memory: it is "
                       "not CUDA-aware");
    return BM_OK;
}

/* Collective. Each rank has a device to itself. */
static bm_status compare_devices(const bm_device_sum *d)
{
    BM_TRY(bm_comm_sum_ints(d->comm, d->device, (size_t)d->size));
    for (int r = 0; r < d->size; r++)
        for (int q = 0; q < r; q++)
            if (d->device[q] == d->device[r] &&
                bm_comm_host(d->comm, q) == bm_comm_host(d->comm, r))
                return BM_FAIL(BM_ERR_DEVICE, "ranks %d and %d share a device",
                               q, r);
    return BM_OK;
}

/* Collective. How the wait ended in which devices meet: a rank that failed says
 * so at once, and others, which it left waiting, have nothing to add. */
static bm_status settle(const bm_device_sum *d, bm_status status)
{
    if (status != BM_OK && bm_comm_alarmed(d->comm))
        status = BM_OK;
    else if (status != BM_OK)
        bm_comm_alarm(d->comm);
    return bm_comm_agree(d->comm, status);
}

static bool alarmed(void *comm)
{
    return bm_comm_alarmed(comm);
}

/* Collective. */
static bm_status join(bm_device_sum *d)
{
    bm_device_comm_id name = {{0}};
    bm_status status = BM_OK;

    BM_TRY(compare_devices(d));
    if (d->rank == 0)
        status = bm_device_comm_make_id(d->be, &name);
    BM_TRY(bm_comm_agree(d->comm, status));
    BM_TRY(bm_comm_broadcast_bytes(d->comm, &name, sizeof name, 0));
    d->joined = true;
    return settle(
        d, bm_device_comm_open(d->be, &name, d->rank, d->size,
                               (bm_device_comm_watch){alarmed, d->comm}));
}

bm_status bm_device_sum_open(bm_device_sum **out, bm_comm *comm, bm_backend *be,
                             size_t n, int workers, const char *coordinator,
                             bm_carrier by)
{
    bm_device_sum *d = calloc(1, sizeof *d);
    bm_status status = BM_OK;

    if (d == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a sum");
    d->comm = comm;
    d->be = be;
    d->rank = bm_comm_rank(comm);
    d->size = bm_comm_size(comm);
    d->n = n;
    d->workers = d->mine.workers = workers;
    d->by = by;
    BM_TRY_DONE(bm_comm_agree(comm, prepare(d, coordinator)));
    if (d->by == BM_BY_DEVICE_COMM)
        BM_TRY_DONE(join(d));
    *out = d;
    d = NULL;
done:
    bm_device_sum_close(d);
    return status;
}

bm_carrier bm_device_sum_carrier(const bm_device_sum *d)
{
    return d->by;
}

void bm_device_sum_close(bm_device_sum *d)
{
    if (d == NULL)
        return;
    if (d->joined)
        bm_device_comm_close(d->be);
    bm_free(d->be, d->room);
    bm_free(d->be, d->inbox);
    bm_free(d->be, d->common);
    bm_free(d->be, d->odd);
    bm_tree_plan_free(&d->plan);
    free(d->weight);
    free(d->device);
    free(d->start);
    free(d);
}

/* As bm_sum_blend. */
static void blend(bm_backend *be, size_t n, float *y, double wy, const float *x,
                  double wx)
{
    if (wx > 0 && wy == 0)
        bm_axpby(be, n, 1, x, 0, y);
    else if (wx > 0)
        bm_blend(be, n, wy / (wy + wx), y, wx / (wy + wx), x);
}

bm_status bm_device_sum_add(bm_device_sum *d, int worker, const float *x,
                            const float *from, double weight, bool *good)
{
    float *last = room(d, d->mine.depth), odd = 0;
    double left = 0, right = 0;
    bm_status status = BM_OK;

    if (weight > 0) {
        bm_difference(d->be, d->n, x, from, last, d->odd);
        bm_get(d->be, &odd, d->odd, 1);
    }
    status = bm_sync(d->be);
    *good = odd == 0;
    if (!*good || status != BM_OK)
        weight = 0;
    d->weight[worker] = weight;
    d->weight[d->workers] += status != BM_OK;
    bm_tree_push(&d->mine, (bm_node){0, worker, weight});
    for (; bm_tree_merge(&d->mine, &left, &right); last -= d->n)
        blend(d->be, d->n, last - d->n, left, last, right);
    return status;
}

size_t bm_device_sum_slice(const bm_device_sum *d, size_t *offset)
{
    *offset = d->start[d->rank];
    return count(d, d->rank);
}

/* All learn what everybody's workers weigh; then nothing is added any more. */
static bm_status weigh(bm_device_sum *d, double *total)
{
    size_t n = (size_t)d->workers;
    double failed = 0;

    BM_TRY(bm_comm_sum(d->comm, d->weight, n + 1));
    failed = d->weight[n];
    bm_tree_weigh(&d->plan, d->comm, d->weight, d->workers);
    *total = 0;
    for (size_t k = 0; k < n; k++)
        *total += d->weight[k];
    memset(d->weight, 0, (n + 1) * sizeof *d->weight);
    d->mine.depth = 0;
    return failed > 0
               ? BM_FAIL(BM_ERR_DEVICE, "the device of a rank has failed")
               : BM_OK;
}

/* ---- from rank to rank --------------------------------------------------- */

/* Collective. What is between begin and end goes together; MPI is given what
 * has been computed, x [n] of all that goes. */
static bm_status begin(const bm_device_sum *d, float *x, size_t n)
{
    if (d->by == BM_BY_DEVICE_COMM) {
        bm_device_comm_begin(d->be);
        return BM_OK;
    }
    (void)bm_device_comm_floats(d->be, x, n);
    return bm_comm_agree(d->comm, bm_sync(d->be));
}

static bm_status end(const bm_device_sum *d)
{
    if (d->by == BM_BY_MPI)
        return bm_comm_agree(d->comm, bm_comm_wait(d->comm));
    bm_device_comm_end(d->be);
    return settle(d, bm_device_comm_wait(d->be));
}

static void send(const bm_device_sum *d, float *x, size_t n, int to)
{
    if (d->by == BM_BY_DEVICE_COMM)
        bm_device_comm_send(d->be, x, n, to);
    else
        bm_comm_send(d->comm, bm_device_comm_floats(d->be, x, n), n, to);
}

static void receive(const bm_device_sum *d, float *x, size_t n, int from)
{
    if (d->by == BM_BY_DEVICE_COMM)
        bm_device_comm_receive(d->be, x, n, from);
    else
        bm_comm_receive(d->comm, bm_device_comm_floats(d->be, x, n), n, from);
}

static void broadcast(const bm_device_sum *d, float *x, size_t n, int root)
{
    if (d->by == BM_BY_DEVICE_COMM)
        bm_device_comm_broadcast(d->be, x, n, root);
    else
        bm_comm_broadcast(d->comm, bm_device_comm_floats(d->be, x, n), n, root);
}

/* MPI counts for itself. */
static void note_sent(const bm_device_sum *d, size_t floats)
{
    if (d->by == BM_BY_DEVICE_COMM)
        bm_comm_count(d->comm, (bm_traffic){.sent = floats * sizeof(float)});
}

/* Everybody's subtrees go to the owners of slices. */
static bm_status swap(const bm_device_sum *d)
{
    size_t own = count(d, d->rank);
    float *in = d->inbox;

    BM_TRY(begin(d, d->room, (size_t)d->plan.deepest * d->n));
    for (int r = 0; own > 0 && r < d->size; r++)
        for (int i = 0; r != d->rank && i < nodes(d, r); i++, in += own)
            receive(d, in, own, r);
    for (int r = 0; r < d->size; r++)
        for (int i = 0; r != d->rank && i < nodes(d, d->rank); i++)
            if (count(d, r) > 0)
                send(d, room(d, i) + d->start[r], count(d, r), r);
    note_sent(d, (size_t)nodes(d, d->rank) * (d->n - own));
    return end(d);
}

/* The subtrees of all ranks merge where their slices lie. */
static float *merge(const bm_device_sum *d)
{
    bm_tree all = {.workers = d->workers};
    float *at[BM_TREE_DEEPEST + 1], *in = d->inbox;
    double left = 0, right = 0;

    for (int r = 0; r < d->size; r++)
        for (int i = 0; i < nodes(d, r); i++) {
            at[all.depth] = in;
            if (r == d->rank)
                at[all.depth] = room(d, i) + d->start[r];
            else
                in += count(d, d->rank);
            bm_tree_push(&all, d->plan.node[d->plan.first[r] + i]);
            while (bm_tree_merge(&all, &left, &right))
                blend(d->be, count(d, d->rank), at[all.depth - 1], left,
                      at[all.depth], right);
        }
    BM_ASSERT(all.depth == 1);
    return at[0];
}

bm_status bm_device_sum_mean(bm_device_sum *d, float **mean, double *weight)
{
    BM_TRY(weigh(d, weight));
    if (*weight == 0)
        return BM_OK;
    if (d->by != BM_BY_NOTHING)
        BM_TRY(swap(d));
    *mean = merge(d);
    return BM_OK;
}

float *bm_device_sum_common(const bm_device_sum *d)
{
    return d->common;
}

bm_status bm_device_sum_share(bm_device_sum *d, float *x)
{
    if (d->by == BM_BY_NOTHING)
        return bm_sync(d->be);
    BM_TRY(begin(d, x, d->n));
    for (int r = 0; r < d->size; r++)
        if (count(d, r) > 0)
            broadcast(d, x + d->start[r], count(d, r), r);
    note_sent(d, (size_t)(d->size - 1) * count(d, d->rank));
    return end(d);
}
