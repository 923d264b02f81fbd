/* sum_halving.c - recursive halving and doubling (Rabenseifner), see grid.h:
 * the fewest messages. For N = 2^k the bits are those of mode tree. */
#include "comm/sum_ops.h"

static bm_status open(bm_sum *s)
{
    bm_grid workers = bm_grid_halving(s->workers);
    bm_grid ranks = bm_grid_halving(s->size);

    if (ranks.folded > 0) /* every rank has a slice */
        ranks = bm_grid_ring(s->size);
    return bm_sum_grid_open(s, &workers, &ranks);
}

const bm_sum_ops bm_sum_halving = {
    .name = "halving",
    .open = open,
    BM_SUM_GRID_OPS,
};
