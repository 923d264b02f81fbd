/*
 * grid.h - which member sends what to which, when the members of a job (workers
 * or ranks) add up a vector by rings along the dimensions of a grid.
 *
 * N = p_1 p_2 .. p_d members form a grid: the coordinates of member v are the
 * digits of v = v_1 + p_1 (v_2 + p_2 (v_3 + ..)). The vector is cut into N
 * slices, numbered likewise; member v owns slice v in the end. Along one
 * dimension after the other, k = 1, 2, .., in step i = 0 .. p_k - 2, a member
 *
 *     scatter   sends the slices of coordinate v_k - 1 - i to the right, and
 *               adds those of coordinate v_k - 2 - i, received from the left
 *     gather    in reverse, k = d .. 1: sends those of v_k - i, and receives
 *               those of v_k - 1 - i
 *
 * modulo p_k; only slices whose coordinates in dimensions before k are its own.
 * That is
 *
 *     one dimension      the ring (Baidu 2017; their chunk k + 1 is slice k): a
 *                        slice is the sum over its owner's right neighbour,
 *                        the next one, .. and the owner, from left to right
 *     all p_k = 2        recursive halving and doubling (Rabenseifner): a
 *                        balanced binary tree, the same for all slices
 *     p_1 x .. x p_d     the multi-ring (IBM DDL 2017)
 *
 * If N is no power of two, halving folds: among the first members, every odd
 * one sends its whole vector to the one before it in a first turn, owns no
 * slice, and receives the result in a last turn.
 *
 * Nothing here depends on the hosts of members, so neither does the order of
 * sums.
 */
#ifndef BM_COMM_GRID_H
#define BM_COMM_GRID_H

#include "core/status.h"

#include <stddef.h>

enum { BM_GRID_DIMENSIONS = 16 };

typedef struct bm_grid {
    int members;
    int folded; /* members 1, 3, .. 2 folded - 1 own no slice */
    int dimensions, size[BM_GRID_DIMENSIONS];
} bm_grid;

bm_grid bm_grid_ring(int members);
bm_grid bm_grid_halving(int members);

/* Reads "4x8x8": sizes whose product is `members`; members with neighbouring
 * numbers differ in the first coordinate. Fails with BM_ERR_CONFIG. */
BM_CHECKED bm_status bm_grid_read(const char *text, int members, bm_grid *out);

/* The number of slices, the member that owns a slice, and the number of slices
 * that members below `member` own. */
int bm_grid_slices(const bm_grid *g);
int bm_grid_owner(const bm_grid *g, int slice);
int bm_grid_below(const bm_grid *g, int member);

/* Slices first, first + step, first + 2 step, .. */
typedef struct bm_slices {
    int first, step;
} bm_slices;

typedef struct bm_turn {
    int to, from; /* members; -1: none */
    bm_slices out, in;
} bm_turn;

/* The number of turns of a scatter, and of a gather; and what a member does in
 * turn t. */
int bm_grid_turns(const bm_grid *g);
bm_turn bm_grid_scatter(const bm_grid *g, int member, int t);
bm_turn bm_grid_gather(const bm_grid *g, int member, int t);

/* The lanes into which slices of a vector of n floats are cut, so that the rings
 * of all dimensions can run at the same time, one lane after the other: 1 if
 * there is one ring, or if lanes would be too short. */
int bm_grid_lanes(const bm_grid *g, size_t n);

/* For turn t of a scatter in which the member receives: the weight of its own
 * sum of those slices, and of the received one. before[m]: the weight of all
 * members below m. */
void bm_grid_weigh(const bm_grid *g, const double *before, int member, int t,
                   double *own, double *coming);

/* The number of elements in these slices; slice k is [edge[k], edge[k + 1]). */
size_t bm_grid_count(const bm_grid *g, const size_t *edge, bm_slices p);

#endif
