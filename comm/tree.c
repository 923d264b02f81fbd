#include "comm/tree.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* If the two rightmost nodes are siblings, they become their parent. Outputs
 * their weights. */
static bool merge(bm_tree *t, double *left, double *right)
{
    bm_node *new = &t->node[t->depth - 1], *old = new - 1;

    for (; (int64_t)1 << new->level < t->workers; new->level++, new->index /= 2)
        if (new->index % 2 == 1) {
            if (t->depth < 2 || old->level != new->level)
                return false; /* its sibling is on a lower rank */
            *left = old->weight;
            *right = new->weight;
            *old = (bm_node){new->level + 1, new->index / 2, *left + *right};
            t->depth--;
            return true;
        } else if ((int64_t)(new->index + 1) << new->level < t->workers) {
            return false; /* its sibling is not added yet */
        }
    return false;
}

void bm_tree_add(bm_tree *t, bm_node node, const float *x,
                 const bm_tree_vectors *v)
{
    bool kept = false; /* x is where it has to be */
    double left = 0, right = 0;

    BM_ASSERT(t->depth < BM_TREE_DEEPEST);
    t->node[t->depth++] = node;
    if (t->deepest < t->depth)
        t->deepest = t->depth;
    while (merge(t, &left, &right)) {
        if (v == NULL)
            continue;
        v->blend(v->self, t->x[t->depth - 1], left, x, right);
        x = t->x[t->depth - 1];
        kept = true;
    }
    if (v != NULL && !kept)
        t->x[t->depth - 1] = v->keep(v->self, t->depth - 1, x);
}

int bm_tree_deepest(int workers)
{
    bm_tree t = {.workers = workers};

    for (int k = 0; k < workers; k++)
        bm_tree_add(&t, (bm_node){0, k, 0}, NULL, NULL);
    return t.deepest;
}

bm_status bm_tree_plan_make(bm_tree_plan *out, int workers, int size, int rank)
{
    bm_tree_plan p = {0};
    bm_tree all = {.workers = workers};

    p.node = malloc((size_t)size * BM_TREE_DEEPEST * sizeof *p.node);
    p.first = calloc((size_t)size + 1, sizeof *p.first);
    if (p.node == NULL || p.first == NULL) {
        bm_tree_plan_free(&p);
        return BM_FAIL(BM_ERR_MEMORY, "no memory to plan a sum");
    }
    for (int r = 0, k = 0; r < size; r++) {
        bm_tree of_r = {.workers = workers};

        for (; k < bm_first_worker(workers, size, r + 1); k++)
            bm_tree_add(&of_r, (bm_node){0, k, 0}, NULL, NULL);
        for (int i = 0; i < of_r.depth; i++)
            bm_tree_add(&all, of_r.node[i], NULL, NULL);
        memcpy(p.node + p.first[r], of_r.node,
               (size_t)of_r.depth * sizeof *p.node);
        p.first[r + 1] = p.first[r] + of_r.depth;
        if (r == rank)
            p.deepest = of_r.deepest;
    }
    p.all = all.deepest;
    *out = p;
    return BM_OK;
}

void bm_tree_plan_free(bm_tree_plan *p)
{
    free(p->node);
    free(p->first);
    *p = (bm_tree_plan){0};
}

void bm_tree_weigh(const bm_tree_plan *p, const bm_comm *comm,
                   const double *weight, int workers)
{
    for (int i = 0; i < p->first[bm_comm_size(comm)]; i++) {
        bm_node *x = &p->node[i];
        int64_t from = (int64_t)x->index << x->level;
        int64_t to = (int64_t)(x->index + 1) << x->level;

        x->weight = 0;
        for (int64_t k = from; k < to && k < workers; k++)
            x->weight += weight[k];
    }
}
