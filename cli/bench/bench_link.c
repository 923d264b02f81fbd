/*
 * bench_link.c - the values of [link] in a network file of bmuf scale, measured
 * between the first and the last rank: latency, half a round trip of one float;
 * and bandwidth per direction while both send 8 MB to each other.
 */
#include "cli/bench/bench.h"
#include "comm/link_time.h"

enum { LATENCY, GB_PER_S, COLUMNS };

static const bm_bench_column columns[] = {
    [LATENCY] = {"latency_us", "latency us", 1, false},
    [GB_PER_S] = {"gb_per_s", "GB/s", 4, false},
    {0},
};

/* All columns of the row. */
static bm_status measure_once(void *self, double *out)
{
    bm_comm *comm = self;
    int rank = bm_comm_rank(comm), last = bm_comm_size(comm) - 1;
    bm_link_time time = {0, 1};

    if (rank == 0 || rank == last)
        BM_TRY(bm_link_measure(comm, last - rank, BM_LINK_FLOATS, &time));
    out[LATENCY] = 1e6 * time.latency_s;
    out[GB_PER_S] = 1e-9 * time.bytes_per_s;
    return bm_comm_barrier(comm);
}

static bm_status measure(const bm_bench *how, bm_comm *comm, size_t row,
                         double *out)
{
    (void)row;
    return bm_bench_medians(how->rounds, COLUMNS, measure_once, comm, out);
}

const bm_benchmark bm_bench_link = {
    .name = "link",
    .rows = (const char *const[]){"link", NULL},
    .columns = columns,
    .head = "link between the first and the last rank, both directions at "
            "once, for bmuf scale\n--network",
    .measure_ranks = measure,
};
