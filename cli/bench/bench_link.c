/*
 * bench_link.c - what [link] of a file for bmuf scale asks for, between the
 * first rank and the last: seconds of a message, half a round trip of one
 * float; and bytes a second while both send 8 MB to each other.
 */
#include "cli/bench/bench.h"
#include "core/clock.h"

#include <stdlib.h>

enum { FLOATS = 2000000, MESSAGES = 21 };

enum { LATENCY, GB_PER_S };

static const bm_bench_column columns[] = {
    [LATENCY] = {"latency_us", "latency us", 1, false},
    [GB_PER_S] = {"gb_per_s", "GB/s", 4, false},
    {0},
};

static bool is_end(const bm_comm *comm)
{
    int rank = bm_comm_rank(comm);

    return rank == 0 || rank == bm_comm_size(comm) - 1;
}

static int other_end(const bm_comm *comm)
{
    return bm_comm_rank(comm) == 0 ? bm_comm_size(comm) - 1 : 0;
}

/* Half the median of some round trips, one after the other. */
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

static bm_status measure(const bm_bench *how, bm_comm *comm, size_t row,
                         double *out)
{
    double latency[BM_BENCH_ROUNDS] = {0}, seconds[BM_BENCH_ROUNDS];
    float *x = calloc(2 * FLOATS, sizeof *x);
    bm_status status = BM_OK;

    (void)row;
    if (x == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for %d floats", 2 * FLOATS);
    BM_TRY_DONE(bm_comm_agree(comm, status));
    BM_TRY_DONE(swap(comm, x, &seconds[0])); /* connects */
    for (size_t i = 0; i < how->rounds; i++) {
        if (is_end(comm))
            BM_TRY_DONE(ping(comm, x, &latency[i]));
        BM_TRY_DONE(swap(comm, x, &seconds[i]));
    }
    out[LATENCY] = 1e6 * bm_bench_median(how->rounds, latency);
    out[GB_PER_S] =
        1e-9 * FLOATS * sizeof(float) / bm_bench_median(how->rounds, seconds);
done:
    free(x);
    return status;
}

static void print_head(const bm_bench *how, FILE *out)
{
    (void)how;
    fprintf(out, "link between the first rank and the last, both ways at a "
                 "time, for bmuf scale --network");
}

static const char *row(const bm_bench *how, size_t i)
{
    (void)how;
    return i == 0 ? "link" : NULL;
}

const bm_bench_part bm_bench_link = {
    .name = "link",
    .row = row,
    .columns = columns,
    .head = print_head,
    .measure_ranks = measure,
};
