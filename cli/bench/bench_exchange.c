/*
 * bench_exchange.c - the cost of a block of bmuf without its training, for a
 * vector of 112 MB and one worker per rank, in every mode of the sum. One
 * MPI_Allreduce of the same bytes is timed before and after each exchange.
 *
 * Times are wall-clock time between barriers of all ranks.
 */
#include "bmuf/strategy.h"
#include "cli/bench/bench.h"
#include "core/clock.h"

#include <stdio.h>

static const char *const modes[] = {
#define X(name) #name,
    BM_SUMS(X)
#undef X
        NULL,
};

enum { FLOATS = 28000000 };

enum { MS, GB_PER_S, RATIO, ALLREDUCE_MS, ADD_MS, COPY_MS, COLUMNS };

static const bm_bench_column columns[] = {
    [MS] = {"exchange_ms", "exchange ms", 1, false},
    [GB_PER_S] = {"gb_per_s", "GB/s", 2, false},
    [RATIO] = {"allreduces", "allreduces", 2, false}, /* median of ratios */
    [ALLREDUCE_MS] = {"allreduce_ms", "allreduce ms", 1, false},
    [ADD_MS] = {"add_ms", "add ms", 1, false},
    [COPY_MS] = {"copy_ms", "copy ms", 1, false},
    {0},
};

typedef struct bench {
    bm_comm *comm;
    bm_config *config;
    bm_params params; /* MPI_Allreduce sums g */
    bm_strategy *strategy;
    size_t round;
} bench;

static bm_status set_up(bench *b, bm_comm *comm, const char *mode)
{
    char workers[64], sum[64];

    *b = (bench){.comm = comm, .params = {.n = FLOATS, .n_learned = FLOATS}};
    snprintf(workers, sizeof workers, "job.workers=%d", bm_comm_size(comm));
    snprintf(sum, sizeof sum, "job.sum=%s", mode);
    BM_TRY(bm_config_new(&b->config));
    BM_TRY(bm_config_set(b->config, workers));
    BM_TRY(bm_config_set(b->config, sum));
    BM_TRY(bm_backend_open(&b->params.be, "cpu", 0));
    BM_TRY(bm_alloc(b->params.be, FLOATS, &b->params.w));
    return bm_alloc(b->params.be, FLOATS, &b->params.g);
}

static void clear_up(bench *b)
{
    bm_strategy_close(b->strategy);
    if (b->params.be != NULL) {
        bm_free(b->params.be, b->params.w);
        bm_free(b->params.be, b->params.g);
    }
    bm_backend_close(b->params.be);
    bm_config_free(b->config);
}

/* Changes every weight, as training would. */
static void change_weights(bench *b)
{
    for (size_t i = 0; i < FLOATS; i++)
        b->params.w[i] += 1e-6f * (float)((i * 2654435761u + b->round) % 1021);
    b->round++;
}

/* Collective. Seconds from *clock until all ranks are here; *clock becomes
 * now. */
static bm_status since(bench *b, double *clock, double *out)
{
    double now = 0;

    BM_TRY(bm_comm_barrier(b->comm));
    now = bm_clock();
    *out = now - *clock;
    *clock = now;
    return BM_OK;
}

static bm_status allreduce(bench *b, double *out)
{
    double clock = 0;

    BM_TRY(since(b, &clock, out));
    BM_TRY(bm_comm_sum_floats(b->comm, b->params.g, FLOATS));
    return since(b, &clock, out);
}

static bm_status block(bench *b, double *add, double *exchange, double *copy)
{
    bm_strategy *s = b->strategy;
    bool good = true;
    double clock = 0, unused = 0;

    change_weights(b);
    BM_TRY(since(b, &clock, &unused));
    BM_TRY(bm_strategy_worker_end(s, bm_comm_rank(b->comm), 1, &good));
    BM_TRY(since(b, &clock, add));
    BM_TRY(bm_strategy_update(s));
    BM_TRY(since(b, &clock, exchange));
    bm_strategy_begin(s, bm_comm_rank(b->comm), NULL);
    return since(b, &clock, copy);
}

/* All columns of a row. */
static bm_status measure_once(void *self, double *out)
{
    double exchange = 0, add = 0, copy = 0, before = 0, after = 0;
    bench *b = self;

    BM_TRY(allreduce(b, &before));
    BM_TRY(block(b, &add, &exchange, &copy));
    BM_TRY(allreduce(b, &after));
    out[MS] = 1e3 * exchange;
    out[GB_PER_S] = 1e-9 * FLOATS * sizeof(float) / exchange;
    out[RATIO] = exchange / ((before + after) / 2);
    out[ALLREDUCE_MS] = 1e3 * (before + after) / 2;
    out[ADD_MS] = 1e3 * add;
    out[COPY_MS] = 1e3 * copy;
    return BM_OK;
}

static bm_status measure(const bm_bench *how, bm_comm *comm, size_t row,
                         double *out)
{
    bench b;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_comm_agree(comm, set_up(&b, comm, modes[row])));
    BM_TRY_DONE(
        bm_strategy_open(&b.strategy, "bmuf", b.config, comm, &b.params));
    BM_TRY_DONE(measure_once(&b, out)); /* allocates and touches all memory */
    status = bm_bench_medians(how->rounds, COLUMNS, measure_once, &b, out);
done:
    clear_up(&b);
    return status;
}

const bm_benchmark bm_bench_exchange = {
    .name = "exchange",
    .rows = modes,
    .columns = columns,
    .head = "exchange of 112 MB, one worker per rank (reduce-scatter, filter, "
            "allgather), and\nMPI_Allreduce of the same bytes",
    .measure_ranks = measure,
};
