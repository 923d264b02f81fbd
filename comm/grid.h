/*
 * grid.h - who sends what to whom when a job's members, workers or ranks, add
 * up a vector by rings along the dimensions of a grid.
 *
 * N = p_1 p_2 .. p_d members stand in a grid: the coordinates of member v are
 * the digits of v = v_1 + p_1 (v_2 + p_2 (v_3 + ..)). The vector has N parts,
 * numbered likewise; part v is member v's in the end. Along one dimension after
 * the other, k = 1, 2, .., with the step i = 0 .. p_k - 2, a member
 *
 *     scatter   sends the parts of coordinate v_k - 1 - i to the right,
 *               adds those of coordinate v_k - 2 - i, which come from the left
 *     gather    the other way round, k = d .. 1: sends those of v_k - i, takes
 *               over those of v_k - 1 - i
 *
 * modulo p_k, of those parts whose coordinates in the dimensions before k are
 * its own. That is
 *
 *     one dimension      the ring (Baidu 2017; their chunk k + 1 is part k):
 *                        a part is the sum over its owner's right neighbour,
 *                        the next one, .. and the owner, from left to right
 *     all p_k = 2        recursive halving and doubling (Rabenseifner): a
 *                        balanced binary tree, the same for all parts
 *     p_1 x .. x p_d     the multi-ring (IBM DDL 2017)
 *
 * Where N is no power of two, halving folds: of the first members every other
 * one gives all it has to the one before it in a first turn, owns no part, and
 * is told in a last one.
 *
 * Nothing here depends on where members are, so the order of sums does not.
 */
#ifndef BM_COMM_GRID_H
#define BM_COMM_GRID_H

#include "core/status.h"

#include <stddef.h>

enum { BM_GRID_DIMENSIONS = 16 };

typedef struct bm_grid {
    int members;
    int folded; /* members 1, 3, .. 2 folded - 1 own no part */
    int dimensions, size[BM_GRID_DIMENSIONS];
} bm_grid;

bm_grid bm_grid_ring(int members);
bm_grid bm_grid_halving(int members);

/* "4x8x8": sizes whose product is `members`, the first of them for members with
 * neighbouring numbers. */
BM_CHECKED bm_status bm_grid_read(const char *text, int members, bm_grid *out);

/* How many parts there are, whose a part is, and how many belong to the members
 * below a member. */
int bm_grid_parts(const bm_grid *g);
int bm_grid_owner(const bm_grid *g, int part);
int bm_grid_below(const bm_grid *g, int member);

/* The parts first, first + step, .. of all that there are. */
typedef struct bm_parts {
    int first, step;
} bm_parts;

typedef struct bm_turn {
    int to, from; /* members; -1: nobody */
    bm_parts out, in;
} bm_turn;

/* What a member does in turn t of either half, of so many. */
int bm_grid_turns(const bm_grid *g);
bm_turn bm_grid_scatter(const bm_grid *g, int member, int t);
bm_turn bm_grid_gather(const bm_grid *g, int member, int t);

/* Of a turn of the scatter in which something comes: the weight of what the
 * member has added up of those parts, and of what comes. before[m] is that of
 * all members below m. */
void bm_grid_weigh(const bm_grid *g, const double *before, int member, int t,
                   double *own, double *coming);

/* The elements of these parts, if part k is [edge[k], edge[k + 1]). */
size_t bm_grid_count(const bm_grid *g, const size_t *edge, bm_parts p);

#endif
