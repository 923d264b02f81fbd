/*
 * bench_link.c - the values of [link] in a network file of bmuf scale, measured
 * between the first and the last rank: latency, half a round trip of one float;
 * and bandwidth per direction while both send 8 MB to each other.
 */
#include "cli/bench/bench.h"
#include "core/clock.h"

#include <stdlib.h>

enum { FLOATS = 2000000, MESSAGES = 21 };

enum { LATENCY, GB_PER_S, COLUMNS };

static const bm_bench_column columns[] = {
    [LATENCY] = {"latency_us", "latency us", 1, false},
    [GB_PER_S] = {"gb_per_s", "GB/s", 4, false},
    {0},
};

typedef struct bench {
    bm_comm *comm;
    float *x; /* [2 FLOATS] */
} bench;

static bool is_end(const bm_comm *comm)
{
    int rank = bm_comm_rank(comm);

    return rank == 0 || rank == bm_comm_size(comm) - 1;
}

static int other_end(const bm_comm *comm)
{
    return bm_comm_rank(comm) == 0 ? bm_comm_size(comm) - 1 : 0;
}

/* Seconds of a message: half the median of MESSAGES round trips. */
static bm_status ping(bm_comm *comm, float *x, double *out)
{
    double seconds[MESSAGES];
    int other = other_end(comm);

    for (size_t i = 0; i < MESSAGES; i++) {
        double since = bm_clock();
        if (bm_comm_rank(comm) != 0) {
            bm_comm_receive(comm, x, 1, other);
            BM_TRY(bm_comm_wait(comm));
        }
        bm_comm_send(comm, x, 1, other);
        BM_TRY(bm_comm_wait(comm));
        if (bm_comm_rank(comm) == 0) {
            bm_comm_receive(comm, x, 1, other);
            BM_TRY(bm_comm_wait(comm));
        }
        seconds[i] = bm_clock() - since;
    }
    *out = bm_bench_median(MESSAGES, seconds) / 2;
    return BM_OK;
}

/* *Collective*. Seconds in which both ends send FLOATS and receive as many. */
static bm_status swap(bm_comm *comm, float *x, double *seconds)
{
    double since = 0;

    BM_TRY(bm_comm_barrier(comm));
    since = bm_clock();
    if (is_end(comm)) {
        bm_comm_send(comm, x, FLOATS, other_end(comm));
        bm_comm_receive(comm, x + FLOATS, FLOATS, other_end(comm));
        BM_TRY(bm_comm_wait(comm));
    }
    BM_TRY(bm_comm_barrier(comm));
    *seconds = bm_clock() - since;
    return BM_OK;
}

/* All columns of the row. */
static bm_status measure_once(void *self, double *out)
{
    const bench *b = self;
    double latency = 0, seconds = 0;

    if (is_end(b->comm))
        BM_TRY(ping(b->comm, b->x, &latency));
    BM_TRY(swap(b->comm, b->x, &seconds));
    out[LATENCY] = 1e6 * latency;
    out[GB_PER_S] = 1e-9 * FLOATS * sizeof(float) / seconds;
    return BM_OK;
}

static bm_status measure(const bm_bench *how, bm_comm *comm, size_t row,
                         double *out)
{
    bench b = {comm, calloc(2 * FLOATS, sizeof *b.x)};
    bm_status status = BM_OK;

    (void)row;
    if (b.x == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for %d floats", 2 * FLOATS);
    BM_TRY_DONE(bm_comm_agree(comm, status));
    BM_TRY_DONE(swap(comm, b.x, &out[GB_PER_S])); /* connects */
    status = bm_bench_medians(how->rounds, COLUMNS, measure_once, &b, out);
done:
    free(b.x);
    return status;
}

const bm_benchmark bm_bench_link = {
    .name = "link",
    .rows = (const char *const[]){"link", NULL},
    .columns = columns,
    .head = "link between the first and the last rank, both directions at "
            "once, for bmuf scale\n--network",
    .measure_ranks = measure,
};
