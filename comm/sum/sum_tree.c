/*
 * sum_tree.c - the default: a balanced binary tree over worker numbers.
 *
 *     level 3          *              A node covers the workers
 *     level 2      *       *          [index << level, (index + 1) << level),
 *     level 1    *   *   *   |        as far as there are any, and holds the
 *     workers   0 1 2 3 4 5 6         weighted mean of theirs.
 *
 * A rank adds its workers like a binary counter: a new leaf merges with its
 * left sibling as soon as both exist, then their parent with its own sibling,
 * and so on. A range of m workers leaves its largest complete subtrees: at most
 * 2 log2 m of them, or one if the range is itself a subtree. (Meanwhile a rank
 * holds up to 2 log2 m vectors.) Every owner of a slice then gets these
 * subtrees of all ranks, for its slice, and adds them in the same way. So the
 * tree depends on N alone, wherever its workers are. If N/P is a power of two,
 * ranks send the fewest bytes, those of one reduce-scatter.
 *
 * A rank's vectors are in its segment of shared memory: owners on the same host
 * read the subtrees there; they are sent to owners on other hosts only.
 */
#include "comm/sum/sum_ops.h"
#include "comm/tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A tree and the memory of its vectors. */
typedef struct stack {
    const bm_sum *sum;
    bm_tree tree;
    size_t stride; /* floats from one vector to the next */
    size_t n;      /* floats to work on */
    float *room;   /* [deepest, stride]; borrowed */
} stack;

typedef struct tree {
    bm_tree_plan plan;
    stack mine;               /* of the workers hosted here, whole vectors */
    stack all;                /* of all workers, a chunk of this rank's slice */
    float *chunks;            /* the room of `all` */
    const float **slice;      /* where the slice of each node of the plan is */
    float *inbox;             /* the slices that are not in shared memory */
    bm_shared_memory *shared; /* `mine.room` of every rank */
} tree;

static float *room(const stack *s, int depth)
{
    return s->room + (size_t)depth * s->stride;
}

static void blend(void *self, float *y, double wy, const float *x, double wx)
{
    const stack *s = self;
    bm_sum_blend(s->sum, y, wy, x, wx, s->n);
}

static float *keep(void *self, int depth, const float *x)
{
    const stack *s = self;
    float *to = room(s, depth);

    if (x != to)
        s->sum->loops->copy(s->n, x, to);
    return to;
}

static void add(stack *s, bm_node node, const float *x)
{
    const bm_tree_vectors vectors = {blend, keep, s};
    bm_tree_add(&s->tree, node, x, &vectors);
}

static bm_status prepare(const bm_sum *s, tree *t)
{
    BM_TRY(bm_tree_plan_make(&t->plan, s->workers, s->size, s->rank));
    t->chunks =
        malloc(((size_t)t->plan.all * BM_SUM_CHUNK + 1) * sizeof *t->chunks);
    if (t->chunks == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d chunks", t->plan.all);
    t->mine = (stack){.sum = s, .stride = s->n, .n = s->n};
    t->all = (stack){.sum = s, .stride = BM_SUM_CHUNK, .room = t->chunks};
    t->mine.tree.workers = t->all.tree.workers = s->workers;
    return BM_OK;
}

/* Sets where each slice is: in shared memory or in the inbox. */
static bm_status locate(bm_sum *s, tree *t)
{
    size_t count = bm_sum_count(s, s->rank), sent = 0;
    float *in = NULL;

    for (int r = 0; r < s->size; r++)
        if (bm_shared_memory_segment(t->shared, r) == NULL)
            sent += (size_t)(t->plan.first[r + 1] - t->plan.first[r]);
    in = t->inbox = malloc((sent * count + 1) * sizeof *t->inbox);
    t->slice = calloc((size_t)t->plan.first[s->size], sizeof(float *));
    if (t->inbox == NULL || t->slice == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu slices", sent);
    for (int r = 0; r < s->size; r++) {
        const float *segment = bm_shared_memory_segment(t->shared, r);

        for (int i = t->plan.first[r]; i < t->plan.first[r + 1]; i++) {
            t->slice[i] = in;
            if (segment == NULL)
                in += count;
            else
                t->slice[i] = segment + (size_t)(i - t->plan.first[r]) * s->n +
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
    BM_TRY(bm_shared_memory_open(
        &t->shared, s->comm, (size_t)t->plan.deepest * s->n * sizeof(float)));
    t->mine.room = bm_shared_memory_segment(t->shared, s->rank);
    return locate(s, t);
}

static void tree_close(bm_sum *s)
{
    tree *t = s->self;

    if (t == NULL)
        return;
    bm_shared_memory_close(t->shared);
    bm_tree_plan_free(&t->plan);
    free(t->chunks);
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
    add(&t->mine, (bm_node){0, worker, weight}, x);
}

/* Sends this rank's subtrees to the owners that cannot read them, and receives
 * those of other hosts. */
static bm_status swap(bm_sum *s, const tree *t)
{
    size_t own = bm_sum_count(s, s->rank), read = 0;
    float *in = t->inbox;

    for (int r = 0; r < s->size; r++)
        for (int i = t->plan.first[r];
             bm_shared_memory_segment(t->shared, r) == NULL &&
             i < t->plan.first[r + 1];
             i++, in += own)
            bm_comm_receive(s->comm, in, own, r);
    for (int k = 1; k < s->size; k++) {
        int to = (s->rank + k) % s->size; /* spreads the load */
        size_t n = bm_sum_count(s, to);

        if (bm_shared_memory_segment(t->shared, to) != NULL) {
            read += (size_t)t->mine.tree.depth * n;
            continue;
        }
        for (int i = 0; i < t->mine.tree.depth; i++)
            bm_comm_send(s->comm, room(&t->mine, i) + s->start[to], n, to);
    }
    bm_comm_count(s->comm, (bm_traffic){.shared = read * sizeof(float)});
    return bm_comm_wait(s->comm);
}

static bm_status tree_scatter(bm_sum *s)
{
    tree *t = s->self;

    BM_TRY(swap(s, t));
    bm_tree_weigh(&t->plan, s->comm, s->weight, s->workers);
    t->mine.tree.depth = 0;
    return BM_OK;
}

static void tree_mean(bm_sum *s, size_t at, size_t n, float *out)
{
    tree *t = s->self;

    t->all.tree.depth = 0;
    t->all.n = n;
    for (int i = 0; i < t->plan.first[s->size]; i++)
        add(&t->all, t->plan.node[i], t->slice[i] + at);
    BM_ASSERT(t->all.tree.depth == 1);
    memcpy(out, t->chunks, n * sizeof *out);
}

/* Each subtree of slices that others own, and its own slice to all others. */
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

/* Partial means. */
static double tree_vectors(double hosted)
{
    return fmin(2 * log2(hosted + 1) + 1, 8);
}

const bm_sum_ops bm_sum_tree = {
    .name = "tree",
    .traits = {.any_cut = true, .vectors = tree_vectors},
    .open = tree_open,
    .close = tree_close,
    .room = tree_room,
    .rooms = tree_rooms,
    .add = tree_add,
    .scatter = tree_scatter,
    .mean = tree_mean,
    .sent = tree_sent,
};
