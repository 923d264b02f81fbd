/*
 * sum_grid.c - the modes that add up along a grid (grid.h). Every worker's
 * vector has its place in the grid, whatever rank hosts it, so that the bits of
 * the mean depend on N alone. Workers of one rank exchange in memory, others by
 * messages. With N = P it is the textbook's algorithm, byte for byte.
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
 */
#include "comm/sum/sum_ops.h"

#include <stdlib.h>
#include <string.h>

enum { SEGMENT = 1 << 16 }; /* floats */

/* A position in the elements of some slices, one slice after the other. */
typedef struct walk {
    const bm_grid *grid;
    const size_t *edge;
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
    double own, coming;
    walk out, in, merged;
    float *inbox[2], *outbox;
    const float *came[2]; /* a received segment: in an inbox or in x */
} transfer;

typedef struct grid_sum {
    bm_grid workers, ranks;
    size_t *edge;   /* [slices + 1]: of the workers' slices */
    double *before; /* [workers + 1]: weights, for bm_grid_weigh */
    int first, hosted;
    float *x;            /* [hosted, n] */
    float *box;          /* [hosted, 3, segment] */
    transfer *transfers; /* [hosted] */
} grid_sum;

/* ---- transfers ----------------------------------------------------------- */

static walk over(const bm_grid *g, const size_t *edge, bm_slices p)
{
    return (walk){g, edge, p.first, p.step, 0, bm_grid_count(g, edge, p)};
}

/* Returns n: the next elements [*from, *from + n) are contiguous. */
static size_t contiguous(walk *w, size_t *from)
{
    while (w->edge[w->slice] + w->into == w->edge[w->slice + 1]) {
        w->slice += w->step;
        w->into = 0;
    }
    *from = w->edge[w->slice] + w->into;
    return w->edge[w->slice + 1] - *from;
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

/* Runs the transfers of a turn. None of them writes what another one reads. */
static bm_status run(const bm_sum *s, transfer *transfers, int n)
{
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

/* The rank that hosts a worker; -1 for worker -1. */
static int host(int workers, int size, int worker)
{
    if (worker < 0)
        return -1;
    return (int)((((int64_t)worker + 1) * size - 1) / workers);
}

static float *vector(const bm_sum *s, int worker)
{
    const grid_sum *g = s->self;
    return g->x + (size_t)(worker - g->first) * s->n;
}

static void prepare_scatter(const bm_sum *s, transfer *t, int worker, int k)
{
    const grid_sum *g = s->self;
    bm_turn turn = bm_grid_scatter(&g->workers, worker, k);

    t->x = vector(s, worker);
    t->from = NULL;
    t->to_rank = host(s->workers, s->size, turn.to);
    t->from_rank = host(s->workers, s->size, turn.from);
    t->in = t->merged = over(&g->workers, g->edge, turn.in);
    t->out = over(&g->workers, g->edge, turn.out);
    if (turn.from >= 0)
        bm_grid_weigh(&g->workers, g->before, worker, k, &t->own, &t->coming);
    if (t->to_rank == s->rank)
        t->out.left = 0;
    if (t->from_rank == s->rank) {
        t->from = vector(s, turn.from);
        t->in.left = 0;
    }
}

bm_status bm_sum_grid_scatter(bm_sum *s)
{
    grid_sum *g = s->self;

    for (int k = 0; k < s->workers; k++)
        g->before[k + 1] = g->before[k] + s->weight[k];
    for (int t = 0; t < bm_grid_turns(&g->workers); t++) {
        for (int i = 0; i < g->hosted; i++)
            prepare_scatter(s, &g->transfers[i], g->first + i, t);
        BM_TRY(run(s, g->transfers, g->hosted));
    }
    return BM_OK;
}

/* On each rank, only its own slice of x has weight. */
bm_status bm_sum_grid_gather(bm_sum *s, float *x)
{
    grid_sum *g = s->self;
    const size_t *edge = s->workers == s->size ? g->edge : s->start;
    transfer *t = g->transfers;

    for (int k = 0; k < bm_grid_turns(&g->ranks); k++) {
        bm_turn turn = bm_grid_gather(&g->ranks, s->rank, k);

        t->x = x;
        t->from = NULL;
        t->to_rank = turn.to;
        t->from_rank = turn.from;
        t->in = t->merged = over(&g->ranks, edge, turn.in);
        t->out = over(&g->ranks, edge, turn.out);
        t->own = 0;
        t->coming = 1;
        BM_TRY(run(s, t, 1));
    }
    return BM_OK;
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
    size_t hosted = (size_t)g->hosted, room = least(s->n, SEGMENT);

    g->x = calloc(hosted * s->n + 1, sizeof *g->x);
    g->box = malloc((hosted * 3 * room + 1) * sizeof *g->box);
    g->transfers = calloc(hosted, sizeof *g->transfers);
    g->before = calloc((size_t)s->workers + 1, sizeof *g->before);
    if (!g->x || !g->box || !g->transfers || !g->before)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu vectors of %zu floats",
                       hosted, s->n);
    for (size_t i = 0; i < hosted; i++) {
        g->transfers[i].inbox[0] = g->box + 3 * i * room;
        g->transfers[i].inbox[1] = g->transfers[i].inbox[0] + room;
        g->transfers[i].outbox = g->transfers[i].inbox[1] + room;
    }
    return BM_OK;
}

bm_status bm_sum_grid_open(bm_sum *s)
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
    BM_TRY(cut(&g->workers, s->n, s->coordinator, &g->edge));
    cut_slices(&g->workers, g->edge, s->size, s->start);
    return make_transfers(s, g);
}

void bm_sum_grid_close(bm_sum *s)
{
    grid_sum *g = s->self;

    if (g == NULL)
        return;
    free(g->edge);
    free(g->before);
    free(g->x);
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
        int own = host(s->workers, s->size, k);

        for (int t = 0; t < bm_grid_turns(g); t++) {
            bm_turn turn = bm_grid_scatter(g, k, t);
            if (host(s->workers, s->size, turn.to) != own)
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
