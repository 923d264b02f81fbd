/* sum_halving.c - recursive halving and doubling (Rabenseifner), see grid.h:
 * the fewest messages. For N = 2^k the bits are those of mode tree. */
#include "comm/sum/sum_ops.h"

/* Every rank owns a slice; where halving would fold some, ranks gather round a
 * ring. */
static bm_status grids(const bm_sum_shape *s, bm_grid *workers, bm_grid *ranks)
{
    *workers = bm_grid_halving(s->workers);
    *ranks = bm_grid_halving(s->size);
    if (ranks->folded > 0)
        *ranks = bm_grid_ring(s->size);
    return BM_OK;
}

const bm_sum_ops bm_sum_halving = {
    .name = "halving",
    .grids = grids,
    BM_SUM_GRID_OPS,
};
