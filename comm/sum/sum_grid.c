/*
 * sum_grid.c - the modes that add up along a grid (grid.h): every worker's
 * vector has its place in the grid, whatever rank hosts it, so that the bits of
 * the mean depend on N alone. What two workers of one rank tell each other
 * stays in memory, the rest is sent. With N = P it is the textbook's algorithm,
 * byte for byte.
 *
 * What travels are weighted means, of so many workers, and their weights are
 * known: y and x become (wy y + wx x) / (wy + wx), rounded once. So equal
 * vectors are their own mean, as is one that alone has weight, bit for bit, and
 * N vectors' mean is off by at most (N - 1) 2^-24 of the largest of them.
 *
 * The gather adds nothing up: it goes from rank to rank, by the same grid if N
 * = P, else by another one.
 *
 * A transfer is cut into segments: while one is added, the next one travels.
 */
#include "comm/sum/sum_ops.h"

#include <stdlib.h>
#include <string.h>

enum { SEGMENT = 1 << 16 }; /* floats */

/* The elements of some parts, one after the other. */
typedef struct walk {
    const bm_grid *grid;
    const size_t *edge;
    int part, step;
    size_t into; /* of that part, so many are done */
    size_t left; /* of all */
} walk;

/* A member that this rank hosts, in a turn. Mean x of weight `own` gets what
 * comes, of weight `coming`. */
typedef struct lane {
    float *x;          /* [n] */
    const float *from; /* [n]: what comes is here; NULL: it is sent */
    int to_rank, from_rank;
    double own, coming;
    walk out, in, merged;
    float *inbox[2], *outbox;
    const float *came[2]; /* where a segment is, in an inbox or in x */
} lane;

typedef struct grid_sum {
    bm_grid workers, ranks;
    size_t *edge;   /* of the workers' parts */
    double *before; /* [workers + 1]: weights, for bm_grid_weigh */
    int first, hosted;
    float *x;    /* [hosted, n] */
    float *box;  /* [hosted, 3, segment] */
    lane *lanes; /* [hosted] */
} grid_sum;

/* ---- transfers ----------------------------------------------------------- */

static walk over(const bm_grid *g, const size_t *edge, bm_parts p)
{
    return (walk){g, edge, p.first, p.step, 0, bm_grid_count(g, edge, p)};
}

/* The elements that come next and lie side by side: [*from, *from + n). */
static size_t side_by_side(walk *w, size_t *from)
{
    while (w->edge[w->part] + w->into == w->edge[w->part + 1]) {
        w->part += w->step;
        w->into = 0;
    }
    *from = w->edge[w->part] + w->into;
    return w->edge[w->part + 1] - *from;
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

/* The next n elements of what goes out, packed if they lie apart. */
static const float *pack(const bm_sum *s, lane *l, size_t n)
{
    size_t from = 0;

    if (side_by_side(&l->out, &from) >= n) {
        pass(&l->out, n);
        return l->x + from;
    }
    for (size_t done = 0; done < n;) {
        size_t m = least(side_by_side(&l->out, &from), n - done);

        s->loops->copy(m, l->x + from, l->outbox + done);
        pass(&l->out, m);
        done += m;
    }
    return l->outbox;
}

/* Merges the next n elements. */
static void merge(const bm_sum *s, lane *l, const float *x, size_t n)
{
    size_t from = 0;

    for (size_t done = 0; done < n;) {
        size_t m = least(side_by_side(&l->merged, &from), n - done);

        bm_sum_blend(s, l->x + from, l->own, x + done, l->coming, m);
        pass(&l->merged, m);
        done += m;
    }
}

/* What comes is on this rank already. */
static void merge_here(const bm_sum *s, lane *l)
{
    size_t from = 0;

    while (l->merged.left > 0) {
        size_t n = least(side_by_side(&l->merged, &from), l->merged.left);
        merge(s, l, l->from + from, n);
    }
}

/* Queues the next segment. Something without weight is overwritten in place.
 * False: there is none. */
static bool post(const bm_sum *s, lane *l, int box)
{
    size_t in = least(l->in.left, SEGMENT), out = least(l->out.left, SEGMENT);
    size_t from = 0;

    if (in > 0) {
        float *x = l->inbox[box];

        if (side_by_side(&l->in, &from) >= in && l->own == 0)
            x = l->x + from;
        bm_comm_receive(s->comm, x, in, l->from_rank);
        l->came[box] = x;
        for (size_t n = in; n > 0;) {
            size_t m = least(side_by_side(&l->in, &from), n);
            pass(&l->in, m);
            n -= m;
        }
    }
    if (out > 0)
        bm_comm_send(s->comm, pack(s, l, out), out, l->to_rank);
    return in > 0 || out > 0;
}

/* All lanes of a turn: none of them writes what another one reads. */
static bm_status run(const bm_sum *s, lane *lanes, int n)
{
    for (int segment = 0;; segment++) {
        bool more = false;

        for (int i = 0; i < n; i++)
            more = post(s, &lanes[i], segment % 2) || more;
        for (int i = 0; i < n; i++)
            if (lanes[i].from != NULL)
                merge_here(s, &lanes[i]);
            else if (segment > 0)
                merge(s, &lanes[i], lanes[i].came[1 - segment % 2],
                      least(lanes[i].merged.left, SEGMENT));
        if (!more)
            return BM_OK;
        BM_TRY(bm_comm_wait(s->comm));
    }
}

/* ---- the two halves ------------------------------------------------------ */

/* The rank of a worker; -1: of nobody. */
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

static void prepare_scatter(const bm_sum *s, lane *l, int worker, int t)
{
    const grid_sum *g = s->self;
    bm_turn turn = bm_grid_scatter(&g->workers, worker, t);

    l->x = vector(s, worker);
    l->from = NULL;
    l->to_rank = host(s->workers, s->size, turn.to);
    l->from_rank = host(s->workers, s->size, turn.from);
    l->in = l->merged = over(&g->workers, g->edge, turn.in);
    l->out = over(&g->workers, g->edge, turn.out);
    if (turn.from >= 0)
        bm_grid_weigh(&g->workers, g->before, worker, t, &l->own, &l->coming);
    if (l->to_rank == s->rank)
        l->out.left = 0;
    if (l->from_rank == s->rank) {
        l->from = vector(s, turn.from);
        l->in.left = 0;
    }
}

bm_status bm_sum_grid_scatter(bm_sum *s)
{
    grid_sum *g = s->self;

    for (int k = 0; k < s->workers; k++)
        g->before[k + 1] = g->before[k] + s->weight[k];
    for (int t = 0; t < bm_grid_turns(&g->workers); t++) {
        for (int i = 0; i < g->hosted; i++)
            prepare_scatter(s, &g->lanes[i], g->first + i, t);
        BM_TRY(run(s, g->lanes, g->hosted));
    }
    return BM_OK;
}

/* Of x, on each rank, all but its slice weighs nothing. */
bm_status bm_sum_grid_gather(bm_sum *s, float *x)
{
    grid_sum *g = s->self;
    const size_t *edge = s->workers == s->size ? g->edge : s->start;
    lane *l = g->lanes;

    for (int t = 0; t < bm_grid_turns(&g->ranks); t++) {
        bm_turn turn = bm_grid_gather(&g->ranks, s->rank, t);

        l->x = x;
        l->from = NULL;
        l->to_rank = turn.to;
        l->from_rank = turn.from;
        l->in = l->merged = over(&g->ranks, edge, turn.in);
        l->out = over(&g->ranks, edge, turn.out);
        l->own = 0;
        l->coming = 1;
        BM_TRY(run(s, l, 1));
    }
    return BM_OK;
}

/* ---- a mode -------------------------------------------------------------- */

/* Where the workers' parts begin; free(). */
static bm_status cut(const bm_grid *workers, size_t n, const char *coordinator,
                     size_t **edge)
{
    int parts = bm_grid_parts(workers);

    *edge = calloc((size_t)parts + 1, sizeof **edge);
    if (*edge == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d workers",
                       workers->members);
    return bm_slices_cut(n, parts, coordinator, *edge);
}

/* Slices are what the workers of each rank own. */
static void cut_slices(const bm_grid *workers, const size_t *edge, int size,
                       size_t *start)
{
    for (int r = 0; r <= size; r++) {
        int first = bm_first_worker(workers->members, size, r);
        start[r] = edge[bm_grid_below(workers, first)];
    }
}

static bm_status make_lanes(const bm_sum *s, grid_sum *g)
{
    size_t hosted = (size_t)g->hosted, room = least(s->n, SEGMENT);

    g->x = calloc(hosted * s->n + 1, sizeof *g->x);
    g->box = malloc((hosted * 3 * room + 1) * sizeof *g->box);
    g->lanes = calloc(hosted, sizeof *g->lanes);
    g->before = calloc((size_t)s->workers + 1, sizeof *g->before);
    if (!g->x || !g->box || !g->lanes || !g->before)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu vectors of %zu floats",
                       hosted, s->n);
    for (size_t i = 0; i < hosted; i++) {
        g->lanes[i].inbox[0] = g->box + 3 * i * room;
        g->lanes[i].inbox[1] = g->lanes[i].inbox[0] + room;
        g->lanes[i].outbox = g->lanes[i].inbox[1] + room;
    }
    return BM_OK;
}

bm_status bm_sum_grid_open(bm_sum *s, const bm_grid *workers,
                           const bm_grid *ranks)
{
    grid_sum *g = s->self = calloc(1, sizeof *g);

    if (g == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a sum");
    g->workers = *workers;
    g->ranks = s->workers == s->size ? *workers : *ranks;
    g->first = bm_comm_first(s->comm, s->workers, s->rank);
    g->hosted = bm_comm_first(s->comm, s->workers, s->rank + 1) - g->first;
    BM_TRY(cut(&g->workers, s->n, s->coordinator, &g->edge));
    cut_slices(&g->workers, g->edge, s->size, s->start);
    return make_lanes(s, g);
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
    free(g->lanes);
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
    int part = bm_grid_below(&g->workers, g->first);

    at += s->start[s->rank];
    while (g->edge[part + 1] <= at)
        part++;
    s->loops->copy(n, vector(s, bm_grid_owner(&g->workers, part)) + at, out);
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

bm_status bm_sum_grid_sent(const bm_sum_shape *s, const bm_grid *workers,
                           const bm_grid *ranks, double *bytes)
{
    const bm_grid *g = s->workers == s->size ? workers : ranks;
    size_t *edge = NULL, *start = calloc((size_t)s->size + 1, sizeof *start);
    bm_status status = cut(workers, s->n, s->coordinator, &edge);

    if (start == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %d ranks", s->size);
    BM_TRY_DONE(status);
    memset(bytes, 0, (size_t)s->size * sizeof *bytes);
    count_scatter(s, workers, edge, bytes);
    cut_slices(workers, edge, s->size, start);
    for (int r = 0; r < s->size; r++)
        for (int t = 0; t < bm_grid_turns(g); t++)
            bytes[r] += bytes_of(g, g == workers ? edge : start,
                                 bm_grid_gather(g, r, t));
done:
    free(edge);
    free(start);
    return status;
}
