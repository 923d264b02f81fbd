/*
 * sum_hier.c - rings along the dimensions of [job] topology (IBM DDL 2017), see
 * grid.h: the bytes of one ring in fewer turns. The first dimension stays on a
 * host if its size is the number of workers of a host. Nx1 and 1xN are the ring.
 */
#include "comm/sum/sum_ops.h"
#include "core/log.h"

#include <stdbool.h>
#include <string.h>

/* Workers of a host x hosts. The ring, if hosts have different numbers of
 * workers, or workers whose numbers are not contiguous. */
static bm_grid by_hosts(const bm_sum_shape *s)
{
    int hosts = 0, each = 0;

    for (int r = 0; r < s->size; r++)
        hosts += bm_comm_host(s->comm, r) == r;
    BM_ASSERT(hosts > 0);
    each = s->workers / hosts;
    for (int r = 0, found = 0; r < s->size; r++) {
        bool leads = bm_comm_host(s->comm, r) == r;

        if (leads && bm_comm_first(s->comm, s->workers, r) != found++ * each)
            return bm_grid_ring(s->workers);
        if (!leads && bm_comm_host(s->comm, r) != bm_comm_host(s->comm, r - 1))
            return bm_grid_ring(s->workers);
    }
    if (each * hosts != s->workers)
        return bm_grid_ring(s->workers);
    return (bm_grid){
        .members = s->workers, .dimensions = 2, .size = {each, hosts}};
}

static bm_status grids(const bm_sum_shape *s, bm_grid *workers, bm_grid *ranks)
{
    static bool logged; /* a job has one topology */

    *ranks = bm_grid_ring(s->size);
    if (s->topology != NULL && strcmp(s->topology, "auto") != 0)
        return bm_grid_read(s->topology, s->workers, workers);
    if (s->comm == NULL) {
        *workers = bm_grid_ring(s->workers); /* as by_hosts on one host */
        return BM_OK;
    }
    *workers = by_hosts(s);
    if (bm_comm_rank(s->comm) == 0 && !logged)
        bm_log(BM_NOTE, "job.topology: %dx%d", workers->size[0],
               workers->dimensions > 1 ? workers->size[1] : 1);
    logged = true;
    return BM_OK;
}

const bm_sum_ops bm_sum_hier = {
    .name = "hier",
    .grids = grids,
    .pipelined = true,
    BM_SUM_GRID_OPS,
};
