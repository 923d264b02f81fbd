/*
 * tree.h - the balanced binary tree over worker numbers that the ordered sum
 * adds up, see sum_tree.c: which nodes merge, when, and with what weights. The
 * vectors of the nodes are the caller's, in whatever memory:
 *
 *     bm_tree_push(t, node)
 *     while (bm_tree_merge(t, &left, &right))
 *         the vectors of the two nodes on top become their weighted mean, in
 *         the place of the left one
 */
#ifndef BM_COMM_TREE_H
#define BM_COMM_TREE_H

#include "comm/comm.h"

#include <stdbool.h>

enum { BM_TREE_DEEPEST = 64 }; /* > 2 log2 of any number of workers */

typedef struct bm_node {
    int level, index; /* workers [index << level, (index + 1) << level) */
    double weight;
} bm_node;

/* Complete subtrees, left to right, that still wait for their siblings. */
typedef struct bm_tree {
    int workers; /* of all of them together */
    int depth, deepest;
    bm_node node[BM_TREE_DEEPEST];
} bm_tree;

/* On the right of the others. */
void bm_tree_push(bm_tree *t, bm_node node);

/* Are the two on top siblings? Then they are one, of these weights. */
bool bm_tree_merge(bm_tree *t, double *left, double *right);

/* What rank after rank, of so many, is left with when it has added all its
 * workers: rank r's are node[first[r]] up to node[first[r + 1]]. */
typedef struct bm_tree_plan {
    bm_node *node;
    int *first;  /* [size + 1] */
    int deepest; /* of workers of rank `rank`, while they are added */
    int all;     /* of all of those subtrees */
} bm_tree_plan;

BM_CHECKED bm_status bm_tree_plan_make(bm_tree_plan *out, int workers, int size,
                                       int rank);
void bm_tree_plan_free(bm_tree_plan *p);

/* The weight of each of these nodes, by those of the workers. */
void bm_tree_weigh(const bm_tree_plan *p, const bm_comm *comm,
                   const double *weight, int workers);

#endif
