/*
 * sum_tree.c - the default: a balanced binary tree over worker numbers.
 *
 *     level 3          *              A node covers the workers
 *     level 2      *       *          [index << level, (index + 1) << level),
 *     level 1    *   *   *   |        as far as there are any, and holds the
 *     workers   0 1 2 3 4 5 6         weighted mean of theirs.
 *
 * A rank adds its workers as one counts in binary: a new leaf merges with its
 * left sibling as soon as both are there, their parent with its own sibling,
 * and so on. What is left of a range of m workers are its largest complete
 * subtrees: at most 2 log2 m of them, or one if the range is itself a subtree.
 * (While it counts, a rank holds up to 2 log2 m vectors too.) Every owner of a
 * slice then gets those subtrees of all ranks, for its slice, and goes on
 * counting where they stopped. So the tree that is summed depends on N alone,
 * wherever its workers are; an N/P that is a power of two moves the fewest
 * bytes, those of one reduce-scatter.
 *
 * The vectors a rank counts with lie in its part of a window: owners on the
 * same host read the subtrees there, only to those on other hosts they are
 * sent.
 */
#include "comm/sum/sum_ops.h"
#include "comm/tree.h"

#include <stdlib.h>
#include <string.h>

/* Nodes, and where their vectors are. */
typedef struct stack {
    bm_tree tree;
    size_t n;    /* of a vector */
    float *room; /* [deepest, n]: the means; borrowed */
} stack;

typedef struct tree {
    bm_tree_plan plan;
    stack mine;          /* of the workers hosted here, whole vectors */
    bm_tree before;      /* the one that is late: `mine` without it */
    bm_node late;        /* this */
    stack all;           /* of all workers, a piece of this rank's slice */
    float *piece;        /* the room of the latter */
    const float **slice; /* where the slice of each node of the plan is */
    float *inbox;        /* the slices that cannot be read in place */
    bm_window *window;   /* `mine.room` of every rank */
} tree;

static float *room(const stack *s, int depth)
{
    return s->room + (size_t)depth * s->n;
}

/* Puts a node on the right of the stack, as t counts it; siblings merge. x: n
 * numbers of its mean, which lie `at` so many from the beginning of vectors.
 * They may lie at their place already. */
static void push(const bm_sum *sum, const stack *s, bm_tree *t, bm_node new,
                 const float *x, size_t at, size_t n)
{
    double left = 0, right = 0;

    bm_tree_push(t, new);
    while (bm_tree_merge(t, &left, &right)) {
        float *y = room(s, t->depth - 1) + at;

        bm_sum_blend(sum, y, left, x, right, n);
        x = y;
    }
    if (x != room(s, t->depth - 1) + at)
        sum->loops->copy(n, x, room(s, t->depth - 1) + at);
}

static bm_status prepare(const bm_sum *s, tree *t)
{
    BM_TRY(bm_tree_plan_make(&t->plan, s->workers, s->size, s->rank));
    t->mine.tree.workers = t->all.tree.workers = s->workers;
    t->piece =
        malloc(((size_t)t->plan.all * BM_SUM_CHUNK + 1) * sizeof *t->piece);
    if (t->piece == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a stack of %d",
                       t->plan.all);
    t->all.room = t->piece;
    t->all.n = BM_SUM_CHUNK;
    return BM_OK;
}

/* Where the slices are: in a window that is within reach, or in the inbox. */
static bm_status locate(bm_sum *s, tree *t)
{
    size_t count = bm_sum_count(s, s->rank), sent = 0;
    float *in = NULL;

    for (int r = 0; r < s->size; r++)
        if (bm_window_part(t->window, r) == NULL)
            sent += (size_t)(t->plan.first[r + 1] - t->plan.first[r]);
    in = t->inbox = malloc((sent * count + 1) * sizeof *t->inbox);
    t->slice = calloc((size_t)t->plan.first[s->size], sizeof(float *));
    if (t->inbox == NULL || t->slice == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu slices", sent);
    for (int r = 0; r < s->size; r++) {
        const float *part = bm_window_part(t->window, r);

        for (int i = t->plan.first[r]; i < t->plan.first[r + 1]; i++) {
            t->slice[i] = in;
            if (part == NULL)
                in += count;
            else
                t->slice[i] = part + (size_t)(i - t->plan.first[r]) * s->n +
                              s->start[s->rank];
        }
    }
    return BM_OK;
}

static bm_status tree_open(bm_sum *s)
{
    tree *t = s->self = calloc(1, sizeof *t);
    bm_status status = BM_OK;

    if (t == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for a tree");
    else
        status = prepare(s, t);
    BM_TRY(bm_comm_agree(s->comm, status));
    BM_ASSERT(t != NULL); /* it is agreed */
    BM_TRY(bm_window_open(&t->window, s->comm,
                          (size_t)t->plan.deepest * s->n * sizeof(float)));
    t->mine.room = bm_window_part(t->window, s->rank);
    t->mine.n = s->n;
    return locate(s, t);
}

static void tree_close(bm_sum *s)
{
    tree *t = s->self;

    if (t == NULL)
        return;
    bm_window_close(t->window);
    bm_tree_plan_free(&t->plan);
    free(t->piece);
    free((void *)t->slice);
    free(t->inbox);
    free(t);
}

static float *tree_room(bm_sum *s)
{
    tree *t = s->self;
    return room(&t->mine, t->mine.tree.depth);
}

static size_t tree_rooms(const bm_sum *s)
{
    const tree *t = s->self;
    return (size_t)t->plan.deepest;
}

static void tree_add(bm_sum *s, int worker, const float *x, double weight)
{
    tree *t = s->self;
    push(s, &t->mine, &t->mine.tree, (bm_node){0, worker, weight}, x, 0, s->n);
}

/* From now on the tree counts it, whatever has come. */
static void tree_late(bm_sum *s, int worker, double weight)
{
    tree *t = s->self;
    double left = 0, right = 0;

    t->before = t->mine.tree;
    t->late = (bm_node){0, worker, weight};
    bm_tree_push(&t->mine.tree, t->late);
    while (bm_tree_merge(&t->mine.tree, &left, &right))
        continue;
}

static void tree_come(bm_sum *s, size_t at, size_t n)
{
    tree *t = s->self;
    bm_tree count = t->before;

    push(s, &t->mine, &count, t->late, room(&t->mine, count.depth) + at, at, n);
}

/* Everybody sends its subtrees' slices to those who cannot read them; or of all
 * slices the parts of a round. */
static bm_status swap(bm_sum *s, const tree *t, const size_t *round)
{
    size_t own = s->start[s->rank], n = bm_sum_count(s, s->rank), read = 0;

    if (round != NULL)
        bm_sum_part(s, *round, s->rank, &own, &n);
    for (int r = 0; r < s->size; r++)
        for (int i = t->plan.first[r];
             bm_window_part(t->window, r) == NULL && i < t->plan.first[r + 1];
             i++)
            bm_comm_receive(s->comm,
                            t->inbox + (t->slice[i] - t->inbox) +
                                (own - s->start[s->rank]),
                            n, r);
    for (int k = 1; k < s->size; k++) {
        int to = (s->rank + k) % s->size; /* not all to the same one at once */
        size_t at = s->start[to];

        n = bm_sum_count(s, to);
        if (round != NULL)
            bm_sum_part(s, *round, to, &at, &n);
        for (int i = 0;
             bm_window_part(t->window, to) == NULL && i < t->mine.tree.depth;
             i++)
            bm_comm_send(s->comm, room(&t->mine, i) + at, n, to);
        if (bm_window_part(t->window, to) != NULL)
            read += (size_t)t->mine.tree.depth * n;
    }
    bm_comm_count(s->comm, (bm_traffic){.shared = read * sizeof(float)});
    return bm_comm_wait(s->comm);
}

static bm_status tree_scatter(bm_sum *s)
{
    tree *t = s->self;

    BM_TRY(swap(s, t, NULL));
    bm_tree_weigh(&t->plan, s->comm, s->weight, s->workers);
    t->mine.tree.depth = 0;
    return BM_OK;
}

static bm_status tree_scatter_round(bm_sum *s, size_t round)
{
    tree *t = s->self;

    BM_TRY(swap(s, t, &round));
    if (round == 0)
        bm_tree_weigh(&t->plan, s->comm, s->weight, s->workers);
    if (round + 1 == bm_sum_rounds(s))
        t->mine.tree.depth = 0;
    return BM_OK;
}

static void tree_mean(bm_sum *s, size_t at, size_t n, float *out)
{
    tree *t = s->self;

    t->all.tree.depth = 0;
    for (int i = 0; i < t->plan.first[s->size]; i++)
        push(s, &t->all, &t->all.tree, t->plan.node[i], t->slice[i] + at, 0, n);
    BM_ASSERT(t->all.tree.depth == 1);
    memcpy(out, t->piece, n * sizeof *out);
}

/* Of every subtree what others own, and what it owns to all of them. */
static bm_status tree_sent(const bm_sum_shape *s, double *bytes)
{
    bm_tree_plan plan;

    BM_TRY(bm_tree_plan_make(&plan, s->workers, s->size, 0));
    for (int r = 0; r < s->size; r++) {
        double own = (double)(s->start[r + 1] - s->start[r]);
        double nodes = plan.first[r + 1] - plan.first[r];

        bytes[r] = 4 * (nodes * ((double)s->n - own) + (s->size - 1) * own);
    }
    bm_tree_plan_free(&plan);
    return BM_OK;
}

const bm_sum_ops bm_sum_tree = {
    .name = "tree",
    .open = tree_open,
    .close = tree_close,
    .room = tree_room,
    .rooms = tree_rooms,
    .add = tree_add,
    .late = tree_late,
    .come = tree_come,
    .scatter = tree_scatter,
    .scatter_round = tree_scatter_round,
    .mean = tree_mean,
    .sent = tree_sent,
};
