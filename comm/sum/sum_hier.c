/*
 * sum_hier.c - rings along the dimensions of [job] topology (IBM DDL 2017), see
 * grid.h: the bytes of one ring in fewer turns, and the first dimension stays
 * on a host if its size is that of the host. Nx1 and 1xN are the ring.
 */
#include "comm/sum/sum_ops.h"
#include "core/log.h"

#include <string.h>

/* Workers of a host by hosts, or the ring: where hosts have not equally many
 * workers, with neighbouring numbers. */
static bm_grid by_hosts(const bm_sum *s)
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

static bool is_automatic(const char *topology)
{
    return topology == NULL || strcmp(topology, "auto") == 0;
}

static bm_status open(bm_sum *s)
{
    static bool told;
    bm_grid workers, ranks = bm_grid_ring(s->size);

    if (!is_automatic(s->topology)) {
        BM_TRY(bm_grid_read(s->topology, s->workers, &workers));
        return bm_sum_grid_open(s, &workers, &ranks);
    }
    workers = by_hosts(s);
    if (s->rank == 0 && !told)
        bm_log(BM_NOTE, "job.topology: %dx%d", workers.size[0],
               workers.dimensions > 1 ? workers.size[1] : 1);
    told = true; /* a job has one */
    return bm_sum_grid_open(s, &workers, &ranks);
}

/* Workers of one host are a ring. */
static bm_status sent(const bm_sum_shape *s, double *bytes)
{
    bm_grid workers = bm_grid_ring(s->workers), ranks = bm_grid_ring(s->size);

    if (!is_automatic(s->topology))
        BM_TRY(bm_grid_read(s->topology, s->workers, &workers));
    return bm_sum_grid_sent(s, &workers, &ranks, bytes);
}

const bm_sum_ops bm_sum_hier = {
    .name = "hier",
    .open = open,
    .sent = sent,
    BM_SUM_GRID_OPS,
};
