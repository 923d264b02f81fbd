/* sum.c - what all modes of the ordered sum share: slices, weights, and the
 * update of the common vector. */
#include "comm/sum/sum.h"

#include "comm/agreed_alloc.h"
#include "comm/sum/sum_ops.h"
#include "core/stream.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "-ffast-math reorders sums: a model's bits would depend on the build"
#endif

static const bm_sum_ops *const modes[] = {
#define X(name) &bm_sum_##name,
    BM_SUMS(X)
#undef X
};

static const bm_sum_loops *const loops[] = {
#define X(isa) &bm_sum_loops_##isa,
    BM_ISAS(X)
#undef X
};

bm_status bm_sum_loops_choose(const bm_sum_loops **out)
{
    size_t isa = 0;

    BM_TRY(bm_isa_choose(&isa));
    *out = loops[isa];
    return BM_OK;
}

static size_t largest_slice(const bm_sum *s)
{
    size_t most = 0;

    for (int r = 0; r < s->size; r++)
        most = bm_sum_count(s, r) > most ? bm_sum_count(s, r) : most;
    return most;
}

static const bm_sum_ops *find(const char *mode)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(modes[i]->name, mode) == 0)
            return modes[i];
    return NULL;
}

static bm_status find_mode(const char *mode, const bm_sum_ops **out)
{
    *out = find(mode);
    return *out != NULL ? BM_OK
                        : BM_FAIL(BM_ERR_CONFIG, "unknown sum '%s'", mode);
}

bm_status bm_sum_check_ranks(int size, int workers)
{
    if (workers < size)
        return BM_FAIL(BM_ERR_CONFIG,
                       "%d ranks for %d workers; use at most one rank a worker",
                       size, workers);
    return BM_OK;
}

const bm_sum_traits *bm_sum_traits_of(const char *mode)
{
    const bm_sum_ops *ops = find(mode);

    BM_ASSERT(ops != NULL);
    return &ops->traits;
}

static bm_status check_topology(const char *mode, const char *topology)
{
    if (strcmp(mode, "hier") != 0 && topology != NULL &&
        strcmp(topology, "auto") != 0)
        return BM_FAIL(BM_ERR_CONFIG,
                       "a topology is for sum hier only, not for %s", mode);
    return BM_OK;
}

bm_status bm_sum_grid(const char *mode, const bm_comm *comm, int workers,
                      const char *topology, bm_grid *out)
{
    bm_sum_shape shape = {.comm = comm,
                          .workers = workers,
                          .size = bm_comm_size(comm),
                          .topology = topology};
    bm_grid of_ranks;

    BM_TRY(find_mode(mode, &shape.ops));
    BM_TRY(check_topology(mode, topology));
    *out = (bm_grid){0};
    return shape.ops->grids != NULL ? shape.ops->grids(&shape, out, &of_ranks)
                                    : BM_OK;
}

/* Not collective. */
static bm_status prepare(bm_sum *s, const char *mode)
{
    BM_TRY(find_mode(mode, &s->ops));
    BM_TRY(bm_sum_check_ranks(s->size, s->workers));
    BM_TRY(bm_sum_loops_choose(&s->loops));
    s->weight = calloc((size_t)s->workers, sizeof *s->weight);
    s->start = calloc((size_t)s->size + 1, sizeof *s->start);
    if (s->weight == NULL || s->start == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d workers", s->workers);
    BM_TRY(check_topology(mode, s->topology));
    return bm_slices_cut(s->n, s->size, s->coordinator, s->start);
}

/* After the slices are cut. */
static bm_status make_room(bm_sum *s)
{
    s->mean = malloc((largest_slice(s) + 1) * sizeof *s->mean);
    if (s->ops->room == NULL)
        s->room = malloc((s->n + 1) * sizeof *s->room);
    if (s->mean == NULL || (s->ops->room == NULL && s->room == NULL))
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu floats", s->n);
    return BM_OK;
}

bool bm_sum_shares_common(const bm_sum *s, int rank)
{
    return rank == s->rank ||
           (bm_shared_memory_available(s->shared) &&
            bm_comm_host(s->comm, rank) == bm_comm_host(s->comm, s->rank));
}

/* True if `rank` receives the common vector in messages: without shared memory
 * every rank, else the first one of each host. */
static bool has_common(const bm_sum *s, int rank)
{
    return !bm_shared_memory_available(s->shared) ||
           bm_comm_host(s->comm, rank) == rank;
}

/* One common vector for all ranks of a host, in shared memory of its first rank;
 * or one for each rank, without shared memory. */
static bm_status open_common(bm_sum *s)
{
    int first = bm_comm_host(s->comm, s->rank);
    size_t size = s->rank == first ? s->n * sizeof(float) : 0;
    bm_status status = BM_OK;

    BM_TRY(bm_shared_memory_open(&s->shared, s->comm, size));
    s->common = bm_shared_memory_segment(s->shared, first);
    if (!bm_shared_memory_available(s->shared)) {
        s->common = s->own = calloc(s->n + 1, sizeof(float));
        if (s->own == NULL)
            status = BM_FAIL(BM_ERR_MEMORY, "no memory for %zu floats", s->n);
    }
    return bm_comm_agree(s->comm, status);
}

bm_status bm_sum_open(bm_sum **out, bm_comm *comm, size_t n, int workers,
                      const char *mode, const char *coordinator,
                      const char *topology)
{
    void *memory = NULL;
    bm_sum *s = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_agreed_alloc(comm, sizeof *s, &memory));
    s = memory;
    s->comm = comm;
    s->rank = bm_comm_rank(comm);
    s->size = bm_comm_size(comm);
    s->n = n;
    s->workers = workers;
    s->coordinator = coordinator;
    s->topology = topology;
    s->next = bm_comm_first(comm, workers, s->rank);
    BM_TRY_DONE(bm_comm_agree(comm, prepare(s, mode)));
    BM_TRY_DONE(bm_comm_agree(comm, s->ops->open(s)));
    BM_TRY_DONE(bm_comm_agree(comm, make_room(s)));
    BM_TRY_DONE(open_common(s));
    *out = s;
    s = NULL;
done:
    bm_sum_close(s);
    return status;
}

void bm_sum_close(bm_sum *s)
{
    if (s == NULL)
        return;
    if (s->ops != NULL)
        s->ops->close(s);
    bm_shared_memory_close(s->shared);
    free(s->own);
    free(s->weight);
    free(s->start);
    free(s->mean);
    free(s->room);
    free(s);
}

bm_status bm_sum_bytes(double *bytes, int size, size_t n, int workers,
                       const char *mode, const char *coordinator,
                       const char *topology)
{
    const bm_sum_ops *ops = find(mode);
    size_t *start = calloc((size_t)size + 1, sizeof *start);
    bm_sum_shape shape = {ops,  NULL,        n,        workers,
                          size, coordinator, topology, start};
    bm_status status = BM_OK;

    if (start == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d ranks", size);
    BM_ASSERT(ops != NULL && size <= workers);
    status = bm_slices_cut(n, size, coordinator, start);
    if (status == BM_OK)
        status = ops->sent(&shape, bytes);
    free(start);
    return status;
}

bm_slice bm_sum_slice(const bm_sum *s)
{
    return (bm_slice){s->start[s->rank], bm_sum_count(s, s->rank), s->mean,
                      s->total};
}

float *bm_sum_room(bm_sum *s)
{
    return s->ops->room != NULL ? s->ops->room(s) : s->room;
}

size_t bm_sum_rooms(const bm_sum *s)
{
    return s->ops->rooms != NULL ? s->ops->rooms(s) : 1;
}

void bm_sum_add(bm_sum *s, int worker, const float *x, double weight)
{
    BM_ASSERT(worker == s->next);
    BM_ASSERT(worker < bm_comm_first(s->comm, s->workers, s->rank + 1));
    /* Integers below 2^53 add up without rounding, in any order. */
    BM_ASSERT(weight >= 0 && weight < 0x1p53 && weight == floor(weight));
    s->next++;
    s->weight[worker] = weight;
    s->ops->add(s, worker, x, weight);
}

/* Collective. All ranks get all weights. */
static bm_status weigh(bm_sum *s)
{
    BM_ASSERT(s->next == bm_comm_first(s->comm, s->workers, s->rank + 1));
    BM_TRY(bm_comm_sum(s->comm, s->weight, (size_t)s->workers));
    s->total = 0;
    for (int k = 0; k < s->workers; k++)
        s->total += s->weight[k];
    return BM_OK;
}

/* For the next sum. */
static void restart(bm_sum *s)
{
    s->next = bm_comm_first(s->comm, s->workers, s->rank);
    memset(s->weight, 0, (size_t)s->workers * sizeof *s->weight);
}

/* Collective. Ends the adding; then this rank's slice of the mean can be read. */
static bm_status scatter(bm_sum *s)
{
    BM_TRY(weigh(s));
    BM_TRY(s->ops->scatter(s));
    restart(s);
    return BM_OK;
}

/* The length of the piece of this rank's slice that starts at `at`. */
static size_t piece_size(const bm_sum *s, size_t at)
{
    size_t rest = bm_sum_count(s, s->rank) - at;
    return rest < BM_SUM_CHUNK ? rest : BM_SUM_CHUNK;
}

static void work_slice(bm_sum *s, bm_sum_work *work, void *self)
{
    float *common = s->common + s->start[s->rank];
    float mean[BM_SUM_CHUNK], after[BM_SUM_CHUNK];

    for (size_t at = 0; at < bm_sum_count(s, s->rank); at += BM_SUM_CHUNK) {
        bm_sum_piece p = {s->start[s->rank] + at, piece_size(s, at), mean,
                          common + at, after};

        s->ops->mean(s, at, p.n, mean);
        work(self, &p);
        bm_stream(p.n, after, common + at);
    }
    bm_stream_end();
}

bm_status bm_sum_update(bm_sum *s, bm_sum_work *work, void *self,
                        double *weight)
{
    BM_TRY(scatter(s));
    *weight = s->total;
    if (s->total == 0)
        return BM_OK;
    work_slice(s, work, self);
    return bm_sum_allgather(s);
}

/* ---- the common vector --------------------------------------------------- */

float *bm_sum_common(const bm_sum *s)
{
    return s->common;
}

/* Sends this rank's slice to every common vector that does not have it yet. */
static bm_status send_common(bm_sum *s)
{
    size_t own = bm_sum_count(s, s->rank);

    for (int k = 1; k < s->size; k++) {
        int from = (s->rank + s->size - k) % s->size;
        if (has_common(s, s->rank) && !bm_sum_shares_common(s, from))
            bm_comm_receive(s->comm, s->common + s->start[from],
                            bm_sum_count(s, from), from);
    }
    for (int k = 1; k < s->size; k++) {
        int to = (s->rank + k) % s->size; /* spreads the load */
        if (has_common(s, to) && !bm_sum_shares_common(s, to))
            bm_comm_send(s->comm, s->common + s->start[s->rank], own, to);
        else
            bm_comm_count(s->comm, (bm_traffic){.shared = own * sizeof(float)});
    }
    return bm_comm_wait(s->comm);
}

bm_status bm_sum_allgather(bm_sum *s)
{
    BM_TRY(s->ops->gather != NULL ? s->ops->gather(s, s->common)
                                  : send_common(s));
    return bm_comm_barrier(s->comm); /* before vectors are overwritten */
}

bm_status bm_sum_scatter(bm_sum *s, bm_slice *out)
{
    BM_TRY(scatter(s));
    for (size_t at = 0; at < bm_sum_count(s, s->rank); at += BM_SUM_CHUNK)
        if (s->total > 0)
            s->ops->mean(s, at, piece_size(s, at), s->mean + at);
        else
            memset(s->mean + at, 0, piece_size(s, at) * sizeof *s->mean);
    *out = bm_sum_slice(s);
    return bm_comm_barrier(s->comm); /* before vectors are overwritten */
}

bm_status bm_sum_gather(bm_sum *s, float *x)
{
    memcpy(x + s->start[s->rank], s->mean,
           bm_sum_count(s, s->rank) * sizeof *x);
    if (s->ops->gather != NULL)
        return s->ops->gather(s, x);
    for (int r = 0; r < s->size; r++)
        bm_comm_broadcast(s->comm, x + s->start[r], bm_sum_count(s, r), r);
    return bm_comm_wait(s->comm);
}

void bm_sum_blend(const bm_sum *s, float *y, double wy, const float *x,
                  double wx, size_t n)
{
    bm_sum_loops_blend(s->loops, y, wy, x, wx, n);
}
