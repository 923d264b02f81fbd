/*
 * bench_exchange.c - what a block of bmuf costs beside its learning, for a
 * vector of 112 MB and one worker on each rank, in every mode of the sum; and
 * one MPI_Allreduce of the same bytes, before and after each turn.
 *
 * Time is the clock's, from when all ranks have come until all are done.
 */
#include "bmuf/strategy.h"
#include "cli/bench/bench.h"
#include "core/clock.h"

#include <stdio.h>
#include <string.h>

static const char *const modes[] = {
#define X(name) #name,
    BM_SUMS(X)
#undef X
};

enum { MODES = sizeof modes / sizeof modes[0], FLOATS = 28000000 };

enum { MS, GB_PER_S, RATIO, ALLREDUCE_MS, ADD_MS, COPY_MS };

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
    bm_params params; /* g is what the library adds up */
    bm_strategy *strategy;
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

static void learn(bench *b, size_t block)
{
    for (size_t i = 0; i < FLOATS; i++)
        b->params.w[i] += 1e-6f * (float)((i * 2654435761u + block) % 1021);
}

/* Seconds until all ranks have done it. */
static bm_status since(bench *b, double *clock, double *out)
{
    double now = 0;

    BM_TRY(bm_comm_meet(b->comm));
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

static bm_status block(bench *b, size_t round, double *add, double *exchange,
                       double *copy)
{
    bm_strategy *s = b->strategy;
    bool good = true;
    double clock = 0, unused = 0;

    learn(b, round);
    BM_TRY(since(b, &clock, &unused));
    BM_TRY(bm_strategy_worker_end(s, bm_comm_rank(b->comm), 1, &good));
    BM_TRY(since(b, &clock, add));
    BM_TRY(bm_strategy_update(s));
    BM_TRY(since(b, &clock, exchange));
    bm_strategy_begin(s, bm_comm_rank(b->comm), NULL);
    return since(b, &clock, copy);
}

static bm_status measure(const bm_bench *how, bm_comm *comm, size_t row,
                         double *out)
{
    double exchange[BM_BENCH_ROUNDS], add[BM_BENCH_ROUNDS];
    double copy[BM_BENCH_ROUNDS], library[BM_BENCH_ROUNDS];
    double ratio[BM_BENCH_ROUNDS], before = 0, after = 0;
    bench b;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_comm_agree(comm, set_up(&b, comm, modes[row])));
    BM_TRY_DONE(
        bm_strategy_open(&b.strategy, "bmuf", b.config, comm, &b.params));
    BM_TRY_DONE(block(&b, 0, &add[0], &exchange[0], &copy[0]));
    BM_TRY_DONE(allreduce(&b, &before)); /* both have their memory by now */
    for (size_t i = 0; i < how->rounds; i++) {
        BM_TRY_DONE(allreduce(&b, &before));
        BM_TRY_DONE(block(&b, i, &add[i], &exchange[i], &copy[i]));
        BM_TRY_DONE(allreduce(&b, &after));
        library[i] = (before + after) / 2;
        ratio[i] = exchange[i] / library[i];
    }
    out[MS] = 1e3 * bm_bench_median(how->rounds, exchange);
    out[GB_PER_S] = 1e-9 * FLOATS * sizeof(float) / (1e-3 * out[MS]);
    out[RATIO] = bm_bench_median(how->rounds, ratio);
    out[ALLREDUCE_MS] = 1e3 * bm_bench_median(how->rounds, library);
    out[ADD_MS] = 1e3 * bm_bench_median(how->rounds, add);
    out[COPY_MS] = 1e3 * bm_bench_median(how->rounds, copy);
done:
    clear_up(&b);
    return status;
}

static void print_head(const bm_bench *how, FILE *out)
{
    (void)how;
    fprintf(out,
            "exchange of 112 MB, one worker a rank: scatter, filter, gather; "
            "beside MPI_Allreduce");
}

static const char *row(const bm_bench *how, size_t i)
{
    (void)how;
    return i < MODES ? modes[i] : NULL;
}

const bm_bench_part bm_bench_exchange = {
    .name = "exchange",
    .row = row,
    .columns = columns,
    .head = print_head,
    .measure_ranks = measure,
};
