/* sum_ring.c - bandwidth-optimal ring (Baidu 2017), see grid.h: N - 1 turns of
 * reduce-scatter, then of gather, a slice to the right neighbour in each. */
#include "comm/sum/sum_ops.h"

static bm_status grids(const bm_sum_shape *s, bm_grid *workers, bm_grid *ranks)
{
    *workers = bm_grid_ring(s->workers);
    *ranks = bm_grid_ring(s->size);
    return BM_OK;
}

const bm_sum_ops bm_sum_ring = {
    .name = "ring",
    .grids = grids,
    BM_SUM_GRID_OPS,
};
