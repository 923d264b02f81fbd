/*
 * tree.h - the balanced binary tree over worker numbers that the ordered sum
 * adds up (sum_tree.c): which nodes merge, when, and with which weights. Where
 * vectors are and how two of them are averaged is the caller's:
 *
 *     bm_tree t = {.workers = n};
 *     for each worker k, or for each subtree from left to right
 *         bm_tree_add(&t, node, x, &vectors);
 */
#ifndef BM_COMM_TREE_H
#define BM_COMM_TREE_H

#include "comm/comm.h"

enum { BM_TREE_DEEPEST = 64 }; /* > 2 log2 of any number of workers */

typedef struct bm_node {
    int level, index; /* workers [index << level, (index + 1) << level) */
    double weight;
} bm_node;

/* Complete subtrees, left to right, whose siblings are not added yet. */
typedef struct bm_tree {
    int workers; /* of the whole tree */
    int depth, deepest;
    bm_node node[BM_TREE_DEEPEST];
    float *x[BM_TREE_DEEPEST]; /* their vectors; borrowed */
} bm_tree;

/* What to do with the vectors of nodes. */
typedef struct bm_tree_vectors {
    /* y, a mean of weight wy, becomes the mean of y and x, which has weight
     * wx. */
    void (*blend)(void *self, float *y, double wy, const float *x, double wx);
    /* Returns the memory in which x waits as number `depth` of the stack, after
     * copying x there if it is elsewhere. Later merges write to it. */
    float *(*keep)(void *self, int depth, const float *x);
    void *self;
} bm_tree_vectors;

/* Adds a node to the right of the others. As long as the two rightmost nodes
 * are siblings, they are blended into their parent, in the memory of the left
 * one. v = NULL: merges nodes without vectors. */
void bm_tree_add(bm_tree *t, bm_node node, const float *x,
                 const bm_tree_vectors *v);

/* The largest `deepest` of a tree to which all workers are added in turn. */
int bm_tree_deepest(int workers);

/* The subtrees that each of `size` ranks is left with when all its workers are
 * added: rank r's are node[first[r]] up to node[first[r + 1] - 1]. */
typedef struct bm_tree_plan {
    bm_node *node;
    int *first;  /* [size + 1] */
    int deepest; /* of the tree of rank `rank`'s workers */
    int all;     /* of the tree to which these subtrees are added */
} bm_tree_plan;

/* Fails with BM_ERR_MEMORY. Free with bm_tree_plan_free. */
BM_CHECKED bm_status bm_tree_plan_make(bm_tree_plan *out, int workers, int size,
                                       int rank);
void bm_tree_plan_free(bm_tree_plan *p);

/* Sets the weight of each node of the plan from weight[workers]. */
void bm_tree_weigh(const bm_tree_plan *p, const bm_comm *comm,
                   const double *weight, int workers);

#endif
