/* sum_ring.c - bandwidth-optimal ring (Baidu 2017), see grid.h: N - 1 turns of
 * reduce-scatter, then of gather, a part to the right neighbour in each. */
#include "comm/sum/sum_ops.h"

static bm_status open(bm_sum *s)
{
    bm_grid workers = bm_grid_ring(s->workers), ranks = bm_grid_ring(s->size);
    return bm_sum_grid_open(s, &workers, &ranks);
}

static bm_status sent(const bm_sum_shape *s, double *bytes)
{
    bm_grid workers = bm_grid_ring(s->workers), ranks = bm_grid_ring(s->size);
    return bm_sum_grid_sent(s, &workers, &ranks, bytes);
}

const bm_sum_ops bm_sum_ring = {
    .name = "ring",
    .open = open,
    .sent = sent,
    BM_SUM_GRID_OPS,
};
