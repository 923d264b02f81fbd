#include "bmuf/exchange/device_sum.h"

#include "comm/agreed_alloc.h"
#include "comm/sum/sum.h"
#include "comm/tree.h"
#include "compute/device_comm.h"

#include <stdlib.h>
#include <string.h>

enum { A_DOUBLE = sizeof(double) / sizeof(float) };

struct bm_device_sum {
    bm_comm *comm;  /* borrowed */
    bm_backend *be; /* borrowed */
    int rank, size;
    size_t n;
    int workers;
    double *weight;    /* [workers + 1]: the last element counts failures */
    int64_t *device;   /* [size]: the device of every rank */
    size_t *start;     /* [size + 1]: rank r owns [start[r], start[r + 1]) */
    int first, hosted; /* workers */
    float *room;       /* vectors of n; along a grid one for each worker */
    size_t rooms;
    float *inbox; /* what other ranks have sent */

    /* tree */
    bm_tree_plan plan;
    bm_tree mine; /* of the workers hosted here */

    /* along a grid, see comm/sum/sum_grid.c; members = 0: tree */
    bm_grid grid;
    size_t *edge;   /* [slices + 1] */
    double *before; /* [workers + 1]: weights, for bm_grid_weigh */
    size_t most;    /* elements that a worker receives in a turn, at most */
    float *mean;    /* this rank's slice */

    float *common;     /* [n] */
    float *non_finite; /* [1] */
    float *square;     /* one double */
    bm_transport by;
    bool joined; /* the device communicator */
};

static size_t count(const bm_device_sum *d, int rank)
{
    return d->start[rank + 1] - d->start[rank];
}

/* The number of a rank's subtrees. */
static int nodes(const bm_device_sum *d, int rank)
{
    return d->plan.first[rank + 1] - d->plan.first[rank];
}

static float *room(const bm_device_sum *d, int number)
{
    return d->room + (size_t)number * d->n;
}

static bool along_grid(const bm_device_sum *d)
{
    return d->grid.members > 0;
}

static bm_status prepare_tree(bm_device_sum *d, size_t *inbox)
{
    BM_TRY(bm_tree_plan_make(&d->plan, d->workers, d->size, d->rank));
    d->rooms = (size_t)d->plan.deepest;
    *inbox = (size_t)(d->plan.first[d->size] - nodes(d, d->rank)) *
             count(d, d->rank);
    return BM_OK;
}

/* A rank's slice: the slices of its workers. */
static bm_status prepare_grid(bm_device_sum *d, const char *coordinator,
                              size_t *inbox)
{
    int slices = bm_grid_slices(&d->grid);

    d->edge = calloc((size_t)slices + 1, sizeof *d->edge);
    d->before = calloc((size_t)d->workers + 1, sizeof *d->before);
    if (d->edge == NULL || d->before == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d workers", d->workers);
    BM_TRY(bm_slices_cut(d->n, slices, coordinator, d->edge));
    for (int r = 0; r <= d->size; r++)
        d->start[r] = d->edge[bm_grid_below(
            &d->grid, bm_comm_first(d->comm, d->workers, r))];
    for (int k = d->first; k < d->first + d->hosted; k++)
        for (int t = 0; t < bm_grid_turns(&d->grid); t++) {
            bm_turn turn = bm_grid_scatter(&d->grid, k, t);
            size_t n =
                turn.from < 0 ? 0 : bm_grid_count(&d->grid, d->edge, turn.in);

            d->most = n > d->most ? n : d->most;
        }
    d->rooms = (size_t)d->hosted;
    *inbox = d->rooms * d->most;
    return bm_alloc(d->be, count(d, d->rank), &d->mean);
}

/* Not collective. */
static bm_status prepare(bm_device_sum *d, const bm_job *job)
{
    size_t inbox = 0;

    BM_TRY(bm_sum_check_ranks(d->size, d->workers));
    d->weight = calloc((size_t)d->workers + 1, sizeof *d->weight);
    d->start = calloc((size_t)d->size + 1, sizeof *d->start);
    if (d->weight == NULL || d->start == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d workers", d->workers);
    BM_TRY(bm_slices_cut(d->n, d->size, job->coordinator, d->start));
    BM_TRY(bm_sum_grid(job->sum, d->comm, d->workers, job->topology, &d->grid));
    if (!along_grid(d) && strcmp(job->sum, "tree") != 0)
        return BM_FAIL(BM_ERR_CONFIG, "devices have no sum %s", job->sum);
    if (along_grid(d))
        BM_TRY(prepare_grid(d, job->coordinator, &inbox));
    else
        BM_TRY(prepare_tree(d, &inbox));
    BM_TRY(bm_alloc(d->be, d->rooms * d->n, &d->room));
    BM_TRY(bm_alloc(d->be, inbox, &d->inbox));
    BM_TRY(bm_alloc(d->be, d->n, &d->common));
    BM_TRY(bm_alloc(d->be, 1, &d->non_finite));
    BM_TRY(bm_alloc(d->be, A_DOUBLE, &d->square));
    d->device = calloc((size_t)d->size, sizeof *d->device);
    if (d->device == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d ranks", d->size);
    if (d->by == BM_TRANSPORT_DEVICE_COMM)
        return bm_device_comm_load(d->be, &d->device[d->rank]);
    if (d->by == BM_TRANSPORT_MPI && !bm_comm_takes_devices(d->comm))
        return BM_FAIL(BM_ERR_UNSUPPORTED,
                       "the MPI library does not accept device memory: it is "
                       "not CUDA-aware");
    return BM_OK;
}

/* Collective. Fails if two ranks share a device. */
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

/* Collective, after a wait in which devices depend on each other. The rank that
 * failed alarms the others, whose own failures are only a consequence. */
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
                             size_t n, const bm_job *job, bm_transport by)
{
    void *memory = NULL;
    bm_device_sum *d = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_agreed_alloc(comm, sizeof *d, &memory));
    d = memory;
    d->comm = comm;
    d->be = be;
    d->rank = bm_comm_rank(comm);
    d->size = bm_comm_size(comm);
    d->n = n;
    d->workers = d->mine.workers = (int)job->workers;
    d->first = bm_comm_first(comm, d->workers, d->rank);
    d->hosted = bm_comm_first(comm, d->workers, d->rank + 1) - d->first;
    d->by = by;
    BM_TRY_DONE(bm_comm_agree(comm, prepare(d, job)));
    if (d->by == BM_TRANSPORT_DEVICE_COMM)
        BM_TRY_DONE(join(d));
    *out = d;
    d = NULL;
done:
    bm_device_sum_close(d);
    return status;
}

void bm_device_sum_close(bm_device_sum *d)
{
    if (d == NULL)
        return;
    if (d->joined)
        bm_device_comm_close(d->be);
    bm_free(d->be, d->room);
    bm_free(d->be, d->inbox);
    bm_free(d->be, d->mean);
    bm_free(d->be, d->common);
    bm_free(d->be, d->non_finite);
    bm_free(d->be, d->square);
    bm_tree_plan_free(&d->plan);
    free(d->edge);
    free(d->before);
    free(d->weight);
    free(d->device);
    free(d->start);
    free(d);
}

/* The elements that a tree adds up: n floats of every node. `x` is the node
 * being added, which stays where it is. */
typedef struct vectors {
    bm_backend *be;
    size_t n;
    float *x;
} vectors;

static void blend(void *self, float *y, double wy, const float *x, double wx)
{
    const vectors *v = self;

    if (wx > 0 && wy == 0)
        bm_axpby(v->be, v->n, 1, x, 0, y);
    else if (wx > 0)
        bm_blend(v->be, v->n, wy / (wy + wx), y, wx / (wy + wx), x);
}

static float *keep(void *self, int depth, const float *x)
{
    const vectors *v = self;

    (void)depth, (void)x;
    return v->x;
}

static void add(bm_tree *t, bm_node node, bm_backend *be, size_t n, float *x)
{
    vectors v = {be, n, x};
    const bm_tree_vectors how = {blend, keep, &v};

    bm_tree_add(t, node, x, &how);
}

bm_status bm_device_sum_add(bm_device_sum *d, int worker, const float *x,
                            const float *from, double weight, size_t measured,
                            double *square, bool *good)
{
    bool grid = along_grid(d);
    float *change = room(d, grid ? worker - d->first : d->mine.depth),
          non_finite = 0;
    bm_status status = BM_OK;

    *square = 0;
    if (weight > 0) {
        bm_difference(d->be, d->n, x, from, change, d->non_finite);
        bm_get(d->be, &non_finite, d->non_finite, 1);
        bm_squares(d->be, measured, change, (double *)(void *)d->square);
        bm_get(d->be, (float *)(void *)square, d->square, A_DOUBLE);
    }
    status = bm_sync(d->be);
    *good = non_finite == 0;
    if (!*good || status != BM_OK)
        weight = 0;
    d->weight[worker] = weight;
    d->weight[d->workers] += status != BM_OK;
    if (!grid)
        add(&d->mine, (bm_node){0, worker, weight}, d->be, d->n, change);
    return status;
}

size_t bm_device_sum_slice(const bm_device_sum *d, size_t *offset)
{
    *offset = d->start[d->rank];
    return count(d, d->rank);
}

/* Collective. All ranks get all weights. Ends the adding. */
static bm_status weigh(bm_device_sum *d, double *total)
{
    size_t n = (size_t)d->workers;
    double failed = 0;

    BM_TRY(bm_comm_sum(d->comm, d->weight, n + 1));
    failed = d->weight[n];
    if (!along_grid(d))
        bm_tree_weigh(&d->plan, d->comm, d->weight, d->workers);
    for (size_t k = 0; k < n && along_grid(d); k++)
        d->before[k + 1] = d->before[k] + d->weight[k];
    *total = 0;
    for (size_t k = 0; k < n; k++)
        *total += d->weight[k];
    memset(d->weight, 0, (n + 1) * sizeof *d->weight);
    d->mine.depth = 0;
    return failed > 0 ? BM_FAIL(BM_ERR_DEVICE, "the device of a rank failed")
                      : BM_OK;
}

/* ---- from rank to rank --------------------------------------------------- */

/* Collective. Starts a group of transfers of elements of x [n]. For MPI, waits
 * until x is computed. */
static bm_status begin(const bm_device_sum *d, float *x, size_t n)
{
    if (d->by == BM_TRANSPORT_DEVICE_COMM) {
        bm_device_comm_begin(d->be);
        return BM_OK;
    }
    (void)bm_device_comm_floats(d->be, x, n);
    return bm_comm_agree(d->comm, bm_sync(d->be));
}

static bm_status end(const bm_device_sum *d)
{
    if (d->by == BM_TRANSPORT_MPI)
        return bm_comm_agree(d->comm, bm_comm_wait(d->comm));
    bm_device_comm_end(d->be);
    return settle(d, bm_device_comm_wait(d->be));
}

static void send(const bm_device_sum *d, float *x, size_t n, int to)
{
    if (d->by == BM_TRANSPORT_DEVICE_COMM)
        bm_device_comm_send(d->be, x, n, to);
    else
        bm_comm_send(d->comm, bm_device_comm_floats(d->be, x, n), n, to);
}

static void receive(const bm_device_sum *d, float *x, size_t n, int from)
{
    if (d->by == BM_TRANSPORT_DEVICE_COMM)
        bm_device_comm_receive(d->be, x, n, from);
    else
        bm_comm_receive(d->comm, bm_device_comm_floats(d->be, x, n), n, from);
}

static void broadcast(const bm_device_sum *d, float *x, size_t n, int root)
{
    if (d->by == BM_TRANSPORT_DEVICE_COMM)
        bm_device_comm_broadcast(d->be, x, n, root);
    else
        bm_comm_broadcast(d->comm, bm_device_comm_floats(d->be, x, n), n, root);
}

/* Transfers by MPI are counted in comm.c. */
static void note_sent(const bm_device_sum *d, size_t floats)
{
    if (d->by == BM_TRANSPORT_DEVICE_COMM)
        bm_comm_count(d->comm, (bm_traffic){.sent = floats * sizeof(float)});
}

/* Sends the subtrees of all ranks to the owners of slices. */
static bm_status swap(const bm_device_sum *d)
{
    size_t own = count(d, d->rank);
    float *in = d->inbox;

    BM_TRY(begin(d, d->room, d->rooms * d->n));
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

/* Adds up the subtrees of all ranks, in place, for this rank's slice. */
static float *merge(const bm_device_sum *d)
{
    bm_tree all = {.workers = d->workers};
    size_t own = count(d, d->rank);
    float *in = d->inbox;

    for (int r = 0; r < d->size; r++)
        for (int i = 0; i < nodes(d, r); i++) {
            bool here = r == d->rank;

            add(&all, d->plan.node[d->plan.first[r] + i], d->be, own,
                here ? room(d, i) + d->start[r] : in);
            in += here ? 0 : own;
        }
    BM_ASSERT(all.depth == 1);
    return all.x[0];
}

/* ---- along a grid -------------------------------------------------------- */

static int host(const bm_device_sum *d, int worker)
{
    return bm_rank_of_worker(d->workers, d->size, worker);
}

/* Sends what worker k sends to another rank in a turn, or receives what it gets;
 * returns how much. Between two ranks slices are in the order of workers, on
 * both. */
static size_t exchange_turn(const bm_device_sum *d, int k, bm_turn turn,
                            bool sends)
{
    int rank = host(d, sends ? turn.to : turn.from);
    bm_slices of = sends ? turn.out : turn.in;
    float *x = room(d, k - d->first);
    float *in = d->inbox + (size_t)(k - d->first) * d->most;
    size_t done = 0;

    if (rank < 0 || rank == d->rank)
        return 0;
    for (size_t all = bm_grid_count(&d->grid, d->edge, of); done < all;
         of.first += of.step) {
        size_t from = d->edge[of.first], n = d->edge[of.first + 1] - from;

        if (n > 0 && sends)
            send(d, x + from, n, rank);
        else if (n > 0)
            receive(d, in + done, n, rank);
        done += n;
    }
    return done;
}

/* Blends what worker k has received in a turn, or what another worker of this
 * rank has, into its mean. */
static void blend_turn(const bm_device_sum *d, int k, int t)
{
    bm_turn turn = bm_grid_scatter(&d->grid, k, t);
    bm_slices of = turn.in;
    const float *in = d->inbox + (size_t)(k - d->first) * d->most;
    bool here = turn.from >= 0 && host(d, turn.from) == d->rank;
    double own = 0, coming = 0;
    size_t done = 0, all = 0;

    if (turn.from < 0)
        return;
    all = bm_grid_count(&d->grid, d->edge, of);
    bm_grid_weigh(&d->grid, d->before, k, t, &own, &coming);
    for (; done < all; of.first += of.step) {
        size_t from = d->edge[of.first], n = d->edge[of.first + 1] - from;
        vectors v = {d->be, n, NULL};

        if (n > 0)
            blend(&v, room(d, k - d->first) + from, own,
                  here ? room(d, turn.from - d->first) + from : in + done,
                  coming);
        done += n;
    }
}

static bm_status run_turn(const bm_device_sum *d, int t)
{
    size_t sent = 0;

    if (d->by != BM_TRANSPORT_NONE)
        BM_TRY(begin(d, d->room, d->rooms * d->n));
    for (int side = 0; side < 2 && d->by != BM_TRANSPORT_NONE; side++)
        for (int k = d->first; k < d->first + d->hosted; k++) {
            bm_turn turn = bm_grid_scatter(&d->grid, k, t);
            size_t n = exchange_turn(d, k, turn, side == 1);

            sent += side == 1 ? n : 0;
        }
    note_sent(d, sent);
    if (d->by != BM_TRANSPORT_NONE)
        BM_TRY(end(d));
    for (int k = d->first; k < d->first + d->hosted; k++)
        blend_turn(d, k, t);
    return BM_OK;
}

/* This rank's slice of the mean, from the workers that own its parts. */
static bm_status run_grid(const bm_device_sum *d)
{
    size_t at = d->start[d->rank], to = d->start[d->rank + 1];
    int slice = bm_grid_below(&d->grid, d->first);

    for (int t = 0; t < bm_grid_turns(&d->grid); t++)
        BM_TRY(run_turn(d, t));
    for (; at < to; at = d->edge[++slice]) {
        int owner = bm_grid_owner(&d->grid, slice);

        bm_axpby(d->be, d->edge[slice + 1] - at, 1,
                 room(d, owner - d->first) + at, 0,
                 d->mean + (at - d->start[d->rank]));
    }
    return BM_OK;
}

bm_status bm_device_sum_mean(bm_device_sum *d, float **mean, double *weight)
{
    BM_TRY(weigh(d, weight));
    if (*weight == 0)
        return BM_OK;
    if (along_grid(d)) {
        *mean = d->mean;
        return run_grid(d);
    }
    if (d->by != BM_TRANSPORT_NONE)
        BM_TRY(swap(d));
    *mean = merge(d);
    return BM_OK;
}

float *bm_device_sum_common(const bm_device_sum *d)
{
    return d->common;
}

bm_status bm_device_sum_allgather(bm_device_sum *d, float *x)
{
    if (d->by == BM_TRANSPORT_NONE)
        return bm_sync(d->be);
    BM_TRY(begin(d, x, d->n));
    for (int r = 0; r < d->size; r++)
        if (count(d, r) > 0)
            broadcast(d, x + d->start[r], count(d, r), r);
    note_sent(d, (size_t)(d->size - 1) * count(d, d->rank));
    return end(d);
}
