/*
 * 64 workers exchange gradients and models, in every mode of the sum, with the
 * result of one rank that hosts them all: on a few ranks in every test run, on 64
 * ranks, far more than cores. With the argument "long", vectors are so long that
 * the rings of a grid run in lanes, in memory that ranks share and by messages.
 */
#include "bmuf/strategy.h"
#include "comm/sum/sum.h"
#include "tests/support/comms.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 64, N = 70001, ROUNDS = 2 };

typedef struct outcome {
    float x[ROUNDS][N];
} outcome;

static float numbers[N + 61 * (WORKERS + ROUNDS)];

/* Within -4 to 4. */
static void make_numbers(void)
{
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        unsigned x = (i + 1) * 2654435761u;

        x ^= x >> 15;
        x *= 2246822519u;
        numbers[i] = ldexpf((float)(x >> 8) - (1 << 23), -27 + (int)(x % 7));
    }
}

/* N of them. */
static const float *noise(int worker, int round)
{
    return numbers + 61 * (worker + round);
}

static double samples(int worker)
{
    return worker % 9 == 4 ? 0 : 10 + 3 * worker;
}

static void set(bm_config *config, const char *key, const char *value)
{
    char text[128];

    snprintf(text, sizeof text, "job.%s=%s", key, value);
    assert_ok(bm_config_set(config, text));
}

static void exchange(bm_strategy *s, bm_comm *comm, int round)
{
    bool steps = s->ops->per == BM_STEP;
    int rank = bm_comm_rank(comm);
    float *x = steps ? s->params->g : s->params->w;

    for (int k = bm_comm_first(comm, WORKERS, rank);
         k < bm_comm_first(comm, WORKERS, rank + 1); k++) {
        const float *change = noise(k, round);
        bool good = true;

        if (!steps)
            bm_strategy_begin(s, k, NULL);
        for (int i = 0; i < N; i++)
            x[i] = (steps ? 0 : x[i]) + change[i];
        assert_ok(bm_strategy_worker_end(s, k, samples(k), &good));
        assert_true(good);
    }
    assert_ok(bm_strategy_exchange(s));
}

static outcome *run(bm_comm *comm, const char *strategy, const char *mode)
{
    bm_params params = {.be = cpu, .n = N, .n_learned = N - 1001};
    bm_config *config = NULL;
    bm_strategy *s = NULL;
    outcome *out = zeros(1, sizeof *out);

    assert_ok(bm_config_new(&config));
    set(config, "workers", "64");
    set(config, "sum", mode);
    if (strcmp(mode, "hier") == 0)
        set(config, "topology", "4x2x8");
    assert_ok(bm_alloc(cpu, N, &params.w));
    assert_ok(bm_alloc(cpu, N, &params.g));
    memcpy(params.w, noise(0, 0), N * sizeof *params.w);
    assert_ok(bm_strategy_open(&s, strategy, config, comm, &params));
    for (int t = 0; t < ROUNDS; t++) {
        exchange(s, comm, t);
        memcpy(out->x[t], s->ops->per == BM_STEP ? params.g : params.w,
               sizeof out->x[t]);
    }
    bm_strategy_close(s);
    bm_free(cpu, params.w);
    bm_free(cpu, params.g);
    bm_config_free(config);
    return out;
}

/* For mode mpi, whose order is the library's: a mean has an error of one rounding
 * for each of 65 additions of numbers up to 4, and a filter multiplies the error
 * of two means by less than four. */
static void assert_same(const outcome *a, const outcome *b, bool exactly)
{
    if (exactly)
        assert_memory_equal(a, b, sizeof *a);
    for (int t = 0; t < ROUNDS; t++)
        for (int i = 0; i < N; i++)
            assert_true(fabs((double)a->x[t][i] - b->x[t][i]) <=
                        4 * 4 * (WORKERS + 1) * 0x1p-24);
}

static void check(bm_comm *comm, const char *strategy, const char *mode)
{
    outcome *got = run(comm, strategy, mode);
    bm_comm *alone = NULL;

    assert_ok(bm_comm_open_alone(&alone));
    if (bm_comm_rank(comm) == 0) {
        outcome *expected = run(alone, strategy, mode);

        assert_same(got, expected, strcmp(mode, "mpi") != 0);
        free(expected);
    }
    bm_comm_close(alone);
    for (int t = 0; t < ROUNDS; t++) {
        float *of_first = zeros(N, sizeof *of_first);

        memcpy(of_first, got->x[t], sizeof got->x[t]);
        bm_comm_broadcast(comm, of_first, N, 0);
        assert_ok(bm_comm_wait(comm));
        assert_memory_equal(of_first, got->x[t], sizeof got->x[t]);
        free(of_first);
    }
    free(got);
}

static void test_64_workers_on_many_ranks_equal_one_rank(void **state)
{
    static const char *const modes[] = {
#define X(name) #name,
        BM_SUMS(X)
#undef X
    };
    bm_comm *comm = NULL;

    (void)open_cpu(state);
    assert_ok(bm_comm_open(&comm));
    FOR_EACH (m, modes) {
        check(comm, "ssgd", modes[m]);
        check(comm, "bmuf", modes[m]);
    }
    bm_comm_close(comm);
    (void)close_cpu(state);
}

/* ---- lanes --------------------------------------------------------------- */

enum { LANES = 2, LONG = WORKERS * LANES * (1 << 15) };

static void fill_long(int worker, float *x)
{
    for (size_t i = 0; i < LONG; i += N)
        memcpy(x + i, noise(worker, (int)(i / N) % ROUNDS),
               (i + N < LONG ? N : LONG - i) * sizeof *x);
}

/* The mean over all workers in a grid, on all ranks of the comm. */
static float *long_mean(bm_comm *comm)
{
    float *x = zeros(LONG, sizeof *x);
    int rank = bm_comm_rank(comm);
    bm_sum *sum = NULL;
    bm_slice own;

    assert_ok(
        bm_sum_open(&sum, comm, LONG, WORKERS, "hier", "sharded", "4x4x4"));
    for (int k = bm_comm_first(comm, WORKERS, rank);
         k < bm_comm_first(comm, WORKERS, rank + 1); k++) {
        fill_long(k, bm_sum_room(sum));
        bm_sum_add(sum, k, bm_sum_room(sum), samples(k));
    }
    assert_ok(bm_sum_scatter(sum, &own));
    assert_ok(bm_sum_gather(sum, x));
    bm_sum_close(sum);
    return x;
}

/* Four ranks of a host share memory, and the others get messages. */
static void test_lanes_on_many_ranks_equal_one_rank(void **state)
{
    bm_comm *comm = NULL, *alone = NULL;
    float *got = NULL, *expected = NULL;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    assert_ok(bm_comm_open_alone(&alone));
    if (bm_comm_rank(comm) == 0)
        expected = long_mean(alone);
    else
        expected = zeros(LONG, sizeof *expected);
    bm_comm_broadcast(comm, expected, LONG, 0);
    assert_ok(bm_comm_wait(comm));
    pretend_hosts(comm, 4);
    got = long_mean(comm);
    assert_memory_equal(got, expected, LONG * sizeof *got);
    free(got);
    free(expected);
    bm_comm_close(alone);
    bm_comm_close(comm);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest usual[] = {
        cmocka_unit_test(test_64_workers_on_many_ranks_equal_one_rank),
    };
    const struct CMUnitTest in_lanes[] = {
        cmocka_unit_test(test_lanes_on_many_ranks_equal_one_rank),
    };

    make_numbers();
    if (argc > 1 && strcmp(argv[1], "long") == 0)
        return RUN_GROUP_MPI("crowd in lanes", in_lanes);
    return RUN_GROUP_MPI("crowd", usual);
}
