/*
 * sum_grid.c - the modes that add up along a grid (grid.h). Every worker's
 * vector has its place in the grid, whatever rank hosts it, so that the bits of
 * the mean depend on N alone. Workers of one rank exchange in memory, and so do
 * those of one host: a rank reads its neighbour's vector in shared memory once
 * the neighbour has signalled that it is ready. Other hosts get messages. With N
 * = P it is the textbook's algorithm, byte for byte.
 *
 * Weighted means travel, and their weights are known to the receiver: y and x
 * become (wy y + wx x) / (wy + wx), rounded once. So the mean of equal vectors
 * is that vector, bit for bit, and so is the mean of the only vector with
 * weight. The error of a mean of N vectors is at most (N - 1) 2^-24 of their
 * largest element.
 *
 * The gather runs between ranks, along the same grid if N = P, else along
 * another one.
 *
 * A transfer is cut into segments: while one is added, the next one travels.
 *
 * Slices are cut into lanes, which go through the dimensions one after the
 * other, so that rings of all dimensions run at the same time:
 *
 *     dimension 1   lane 0   lane 1   lane 2
 *     dimension 2            lane 0   lane 1   lane 2
 *
 * An element's order of additions depends on its slice alone, not on its lane.
 */
#include "comm/sum/sum_ops.h"

#include <stdlib.h>
#include <string.h>

enum {
    SEGMENT = 1 << 16, /* floats */
    MOST_STAGES = BM_GRID_DIMENSIONS + 1,
};

/* A position in the elements of some slices, one slice after the other, as far
 * as they are in a lane. */
typedef struct walk {
    const size_t *edge;
    int lane, lanes;
    int slice, step;
    size_t into; /* elements of this slice that are done */
    size_t left; /* elements that are not done, of all slices */
} walk;

/* What a worker hosted here, or this rank, sends and receives in a turn. Its
 * mean x has weight `own`, what it receives has weight `coming`. */
typedef struct transfer {
    float *x;          /* [n] */
    const float *from; /* [n]: the sender's vector in memory; NULL: received */
    int to_rank, from_rank;
    bool signals, awaits; /* through memory that ranks share */
    double own, coming;
    walk out, in, merged;
    float *inbox[2], *outbox;
    const float *came[2]; /* a received segment: in an inbox or in x */
} transfer;

typedef struct grid_sum {
    bm_grid workers, ranks;
    size_t *edge;   /* [slices + 1]: of the workers' slices */
    double *before; /* [workers + 1]: weights, for bm_grid_weigh */
    int first, hosted, lanes;
    bm_shared_memory *shared; /* [hosted, n] of every rank */
    float *x;                 /* [hosted, n]: of this rank, in shared memory */
    float *box;               /* [slots, 3, segment] */
    transfer *transfers;      /* [slots]: of hosted workers in all lanes */
} grid_sum;

/* ---- transfers ----------------------------------------------------------- */

/* Where lane `lane` begins in a slice. */
static size_t cut_of(const walk *w, int slice, int lane)
{
    size_t n = w->edge[slice + 1] - w->edge[slice];
    return w->edge[slice] + n / (size_t)w->lanes * (size_t)lane +
           n % (size_t)w->lanes * (size_t)lane / (size_t)w->lanes;
}

static walk over(const bm_grid *g, const size_t *edge, bm_slices p, int lane,
                 int lanes)
{
    walk w = {edge, lane, lanes, p.first, p.step, 0, 0};

    for (int k = p.first; k < bm_grid_slices(g); k += p.step)
        w.left += cut_of(&w, k, lane + 1) - cut_of(&w, k, lane);
    return w;
}

/* Returns n: the next elements [*from, *from + n) are contiguous. */
static size_t contiguous(walk *w, size_t *from)
{
    while (cut_of(w, w->slice, w->lane) + w->into ==
           cut_of(w, w->slice, w->lane + 1)) {
        w->slice += w->step;
        w->into = 0;
    }
    *from = cut_of(w, w->slice, w->lane) + w->into;
    return cut_of(w, w->slice, w->lane + 1) - *from;
}

static void pass(walk *w, size_t n)
{
    w->into += n;
    w->left -= n;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The next n elements to send; packed if they are not contiguous. */
static const float *pack(const bm_sum *s, transfer *t, size_t n)
{
    size_t from = 0;

    if (contiguous(&t->out, &from) >= n) {
        pass(&t->out, n);
        return t->x + from;
    }
    for (size_t done = 0; done < n;) {
        size_t m = least(contiguous(&t->out, &from), n - done);

        s->loops->copy(m, t->x + from, t->outbox + done);
        pass(&t->out, m);
        done += m;
    }
    return t->outbox;
}

/* Blends the next n elements of x into the mean. */
static void merge(const bm_sum *s, transfer *t, const float *x, size_t n)
{
    size_t from = 0;

    for (size_t done = 0; done < n;) {
        size_t m = least(contiguous(&t->merged, &from), n - done);

        bm_sum_blend(s, t->x + from, t->own, x + done, t->coming, m);
        pass(&t->merged, m);
        done += m;
    }
}

/* The same for a sender on this rank. */
static void merge_here(const bm_sum *s, transfer *t)
{
    size_t from = 0;

    while (t->merged.left > 0) {
        size_t n = least(contiguous(&t->merged, &from), t->merged.left);
        merge(s, t, t->from + from, n);
    }
}

/* Queues the next segment; a mean without weight is received in place. False if
 * nothing is left. */
static bool queue(const bm_sum *s, transfer *t, int box)
{
    size_t in = least(t->in.left, SEGMENT), out = least(t->out.left, SEGMENT);
    size_t from = 0;

    if (in > 0) {
        float *x = t->inbox[box];

        if (contiguous(&t->in, &from) >= in && t->own == 0)
            x = t->x + from;
        bm_comm_receive(s->comm, x, in, t->from_rank);
        t->came[box] = x;
        for (size_t n = in; n > 0;) {
            size_t m = least(contiguous(&t->in, &from), n);
            pass(&t->in, m);
            n -= m;
        }
    }
    if (out > 0)
        bm_comm_send(s->comm, pack(s, t, out), out, t->to_rank);
    return in > 0 || out > 0;
}

/* Waits until all vectors that are read in place are ready. */
static bm_status meet(const bm_sum *s, const transfer *transfers, int n)
{
    bool any = false;

    for (int i = 0; i < n; i++) {
        if (transfers[i].awaits)
            bm_comm_await(s->comm, transfers[i].from_rank);
        if (transfers[i].signals)
            bm_comm_signal(s->comm, transfers[i].to_rank);
        any = any || transfers[i].awaits || transfers[i].signals;
    }
    return any ? bm_comm_wait(s->comm) : BM_OK;
}

/* Runs transfers at the same time. None of them writes what another one
 * reads. */
static bm_status run(const bm_sum *s, transfer *transfers, int n)
{
    BM_TRY(meet(s, transfers, n));
    for (int segment = 0;; segment++) {
        bool more = false;

        for (int i = 0; i < n; i++)
            more = queue(s, &transfers[i], segment % 2) || more;
        for (int i = 0; i < n; i++)
            if (transfers[i].from != NULL)
                merge_here(s, &transfers[i]);
            else if (segment > 0)
                merge(s, &transfers[i], transfers[i].came[1 - segment % 2],
                      least(transfers[i].merged.left, SEGMENT));
        if (!more)
            return BM_OK;
        BM_TRY(bm_comm_wait(s->comm));
    }
}

/* ---- the two halves ------------------------------------------------------ */

static float *vector(const bm_sum *s, int worker)
{
    const grid_sum *g = s->self;
    return g->x + (size_t)(worker - g->first) * s->n;
}

/* The vector of a worker on another rank, if it is in shared memory. */
static const float *shared_vector(const bm_sum *s, int rank, int worker)
{
    const grid_sum *g = s->self;
    const float *x = bm_shared_memory_segment(g->shared, rank);
    int first = bm_comm_first(s->comm, s->workers, rank);

    return x != NULL ? x + (size_t)(worker - first) * s->n : NULL;
}

/* What would be sent is read by others in memory: counts it. */
static void leave(const bm_sum *s, transfer *t)
{
    bm_comm_count(s->comm, (bm_traffic){.shared = t->out.left * sizeof(float)});
    t->out.left = 0;
    t->signals = true;
}

/* Turn k of a worker in a lane; *t keeps its boxes. */
static void prepare_scatter(const bm_sum *s, transfer *t, int worker, int k,
                            int lane)
{
    const grid_sum *g = s->self;
    bm_turn turn = bm_grid_scatter(&g->workers, worker, k);

    t->x = vector(s, worker);
    t->from = NULL;
    t->signals = t->awaits = false;
    t->to_rank = bm_rank_of_worker(s->workers, s->size, turn.to);
    t->from_rank = bm_rank_of_worker(s->workers, s->size, turn.from);
    t->in = t->merged = over(&g->workers, g->edge, turn.in, lane, g->lanes);
    t->out = over(&g->workers, g->edge, turn.out, lane, g->lanes);
    if (turn.from >= 0)
        bm_grid_weigh(&g->workers, g->before, worker, k, &t->own, &t->coming);
    if (t->to_rank == s->rank)
        t->out.left = 0;
    else if (t->to_rank >= 0 &&
             bm_shared_memory_segment(g->shared, t->to_rank) != NULL)
        leave(s, t);
    if (t->from_rank == s->rank) {
        t->from = vector(s, turn.from);
        t->in.left = 0;
    } else if (t->from_rank >= 0) {
        t->from = shared_vector(s, t->from_rank, turn.from);
        t->awaits = t->from != NULL;
        if (t->awaits)
            t->in.left = 0;
    }
}

/* On each rank, only its own slice of x has weight. */
static void prepare_gather(const bm_sum *s, transfer *t, float *x, int k,
                           int lane)
{
    const grid_sum *g = s->self;
    const size_t *edge = s->workers == s->size ? g->edge : s->start;
    int lanes = s->workers == s->size ? g->lanes : 1;
    bm_turn turn = bm_grid_gather(&g->ranks, s->rank, k);
    bool common = x == s->common;

    t->x = x;
    t->from = NULL;
    t->signals = t->awaits = false;
    t->to_rank = turn.to;
    t->from_rank = turn.from;
    t->in = t->merged = over(&g->ranks, edge, turn.in, lane, lanes);
    t->out = over(&g->ranks, edge, turn.out, lane, lanes);
    t->own = 0;
    t->coming = 1;
    if (common && turn.to >= 0 && bm_sum_shares_common(s, turn.to))
        leave(s, t);
    if (common && turn.from >= 0 && bm_sum_shares_common(s, turn.from)) {
        t->in.left = t->merged.left = 0; /* it is there */
        t->awaits = true;
    }
}

/* The turns of one dimension, or of folding. */
typedef struct stage {
    int first, turns;
} stage;

/* Those of a scatter, or of a gather; returns how many. */
static int find_stages(const bm_grid *g, bool gathers, stage out[MOST_STAGES])
{
    int n = 0, first = 0, d = g->dimensions;

    if (g->folded > 0 && !gathers)
        out[n++] = (stage){first++, 1};
    for (int k = 0; k < d; k++) {
        int turns = g->size[gathers ? d - 1 - k : k] - 1;

        out[n++] = (stage){first, turns};
        first += turns;
    }
    if (g->folded > 0 && gathers)
        out[n++] = (stage){first, 1};
    return n;
}

/* x: what is gathered; NULL: scatters. Stage k of lane l runs at the same time
 * as stage k + 1 of the lane before. */
static bm_status run_stages(bm_sum *s, const bm_grid *grid, float *x, int lanes)
{
    const grid_sum *g = s->self;
    stage stages[MOST_STAGES];
    int n = find_stages(grid, x != NULL, stages);

    for (int time = 0; time < n + lanes - 1; time++)
        for (int turn = 0, active = 1; active > 0; turn++) {
            active = 0;
            for (int lane = 0; lane < lanes; lane++) {
                int k = time - lane;

                if (k < 0 || k >= n || turn >= stages[k].turns)
                    continue;
                if (x != NULL)
                    prepare_gather(s, &g->transfers[active++], x,
                                   stages[k].first + turn, lane);
                for (int i = 0; i < g->hosted && x == NULL; i++)
                    prepare_scatter(s, &g->transfers[active++], g->first + i,
                                    stages[k].first + turn, lane);
            }
            BM_TRY(run(s, g->transfers, active));
        }
    return BM_OK;
}

bm_status bm_sum_grid_scatter(bm_sum *s)
{
    grid_sum *g = s->self;

    for (int k = 0; k < s->workers; k++)
        g->before[k + 1] = g->before[k] + s->weight[k];
    return run_stages(s, &g->workers, NULL, g->lanes);
}

bm_status bm_sum_grid_gather(bm_sum *s, float *x)
{
    const grid_sum *g = s->self;

    return run_stages(s, &g->ranks, x, s->workers == s->size ? g->lanes : 1);
}

/* ---- a mode -------------------------------------------------------------- */

/* Allocates the edges of the workers' slices. */
static bm_status cut(const bm_grid *workers, size_t n, const char *coordinator,
                     size_t **edge)
{
    int slices = bm_grid_slices(workers);

    *edge = calloc((size_t)slices + 1, sizeof **edge);
    if (*edge == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d workers",
                       workers->members);
    return bm_slices_cut(n, slices, coordinator, *edge);
}

/* A rank's slice: the slices of its workers. */
static void cut_slices(const bm_grid *workers, const size_t *edge, int size,
                       size_t *start)
{
    for (int r = 0; r <= size; r++) {
        int first = bm_first_worker(workers->members, size, r);
        start[r] = edge[bm_grid_below(workers, first)];
    }
}

static bm_status make_transfers(const bm_sum *s, grid_sum *g)
{
    int stages = g->workers.dimensions;
    size_t slots = (size_t)g->hosted * (size_t)(g->lanes < stages ? g->lanes
                                                : stages > 0      ? stages
                                                                  : 1);
    size_t room = least(s->n, SEGMENT);

    g->box = malloc((slots * 3 * room + 1) * sizeof *g->box);
    g->transfers = calloc(slots, sizeof *g->transfers);
    g->before = calloc((size_t)s->workers + 1, sizeof *g->before);
    if (!g->box || !g->transfers || !g->before)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu transfers", slots);
    for (size_t i = 0; i < slots; i++) {
        g->transfers[i].inbox[0] = g->box + 3 * i * room;
        g->transfers[i].inbox[1] = g->transfers[i].inbox[0] + room;
        g->transfers[i].outbox = g->transfers[i].inbox[1] + room;
    }
    return BM_OK;
}

/* Not collective. */
static bm_status prepare(bm_sum *s)
{
    const bm_sum_shape shape = {s->ops,      s->comm, s->n,
                                s->workers,  s->size, s->coordinator,
                                s->topology, s->start};
    grid_sum *g = s->self = calloc(1, sizeof *g);

    if (g == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a sum");
    BM_TRY(s->ops->grids(&shape, &g->workers, &g->ranks));
    if (s->workers == s->size)
        g->ranks = g->workers;
    g->first = bm_comm_first(s->comm, s->workers, s->rank);
    g->hosted = bm_comm_first(s->comm, s->workers, s->rank + 1) - g->first;
    g->lanes = s->ops->pipelined ? bm_grid_lanes(&g->workers, s->n) : 1;
    BM_TRY(cut(&g->workers, s->n, s->coordinator, &g->edge));
    cut_slices(&g->workers, g->edge, s->size, s->start);
    return make_transfers(s, g);
}

bm_status bm_sum_grid_open(bm_sum *s)
{
    grid_sum *g = NULL;

    BM_TRY(bm_comm_agree(s->comm, prepare(s)));
    g = s->self;
    BM_TRY(bm_shared_memory_open(&g->shared, s->comm,
                                 (size_t)g->hosted * s->n * sizeof(float)));
    g->x = bm_shared_memory_segment(g->shared, s->rank);
    return BM_OK;
}

void bm_sum_grid_close(bm_sum *s)
{
    grid_sum *g = s->self;

    if (g == NULL)
        return;
    bm_shared_memory_close(g->shared);
    free(g->edge);
    free(g->before);
    free(g->box);
    free(g->transfers);
    free(g);
}

float *bm_sum_grid_room(bm_sum *s)
{
    return vector(s, s->next);
}

size_t bm_sum_grid_rooms(const bm_sum *s)
{
    const grid_sum *g = s->self;
    return (size_t)g->hosted;
}

void bm_sum_grid_add(bm_sum *s, int worker, const float *x, double weight)
{
    if (weight > 0 && x != vector(s, worker))
        s->loops->copy(s->n, x, vector(s, worker));
}

void bm_sum_grid_mean(bm_sum *s, size_t at, size_t n, float *out)
{
    const grid_sum *g = s->self;
    int slice = bm_grid_below(&g->workers, g->first);

    at += s->start[s->rank];
    while (g->edge[slice + 1] <= at)
        slice++;
    s->loops->copy(n, vector(s, bm_grid_owner(&g->workers, slice)) + at, out);
}

/* ---- the formula --------------------------------------------------------- */

static double bytes_of(const bm_grid *g, const size_t *edge, bm_turn turn)
{
    return turn.to < 0 ? 0 : 4 * (double)bm_grid_count(g, edge, turn.out);
}

static void count_scatter(const bm_sum_shape *s, const bm_grid *g,
                          const size_t *edge, double *bytes)
{
    for (int k = 0; k < s->workers; k++) {
        int own = bm_rank_of_worker(s->workers, s->size, k);

        for (int t = 0; t < bm_grid_turns(g); t++) {
            bm_turn turn = bm_grid_scatter(g, k, t);
            if (bm_rank_of_worker(s->workers, s->size, turn.to) != own)
                bytes[own] += bytes_of(g, edge, turn);
        }
    }
}

bm_status bm_sum_grid_sent(const bm_sum_shape *s, double *bytes)
{
    bm_grid workers, ranks;
    size_t *edge = NULL, *start = calloc((size_t)s->size + 1, sizeof *start);
    const size_t *gathered = start;
    bm_status status = BM_OK;

    if (start == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d ranks", s->size);
    BM_TRY_DONE(s->ops->grids(s, &workers, &ranks));
    BM_TRY_DONE(cut(&workers, s->n, s->coordinator, &edge));
    memset(bytes, 0, (size_t)s->size * sizeof *bytes);
    count_scatter(s, &workers, edge, bytes);
    cut_slices(&workers, edge, s->size, start);
    if (s->workers == s->size) {
        ranks = workers;
        gathered = edge;
    }
    for (int r = 0; r < s->size; r++)
        for (int t = 0; t < bm_grid_turns(&ranks); t++)
            bytes[r] +=
                bytes_of(&ranks, gathered, bm_grid_gather(&ranks, r, t));
done:
    free(edge);
    free(start);
    return status;
}

double bm_sum_grid_vectors(double hosted)
{
    return hosted + 1;
}
