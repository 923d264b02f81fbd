/* sum_halving.c - recursive halving and doubling (Rabenseifner), see grid.h:
 * the fewest messages. For N = 2^k the bits are those of mode tree. */
#include "comm/sum/sum_ops.h"

/* Every rank has a slice, where that is not a worker's. */
static bm_grid among_ranks(int size)
{
    bm_grid g = bm_grid_halving(size);
    return g.folded > 0 ? bm_grid_ring(size) : g;
}

static bm_status open(bm_sum *s)
{
    bm_grid workers = bm_grid_halving(s->workers), ranks = among_ranks(s->size);
    return bm_sum_grid_open(s, &workers, &ranks);
}

static bm_status sent(const bm_sum_shape *s, double *bytes)
{
    bm_grid workers = bm_grid_halving(s->workers), ranks = among_ranks(s->size);
    return bm_sum_grid_sent(s, &workers, &ranks, bytes);
}

const bm_sum_ops bm_sum_halving = {
    .name = "halving",
    .open = open,
    .sent = sent,
    BM_SUM_GRID_OPS,
};
