/*
 * Bytes that ranks transfer in an exchange, as counted, against formulas: the
 * ordered sum in every mode, with one worker on each rank and with several; then
 * blocks of the trainer, with every strategy.
 */
#include "comm/sum/sum.h"
#include "tests/support/comms.h"
#include "tests/support/fixture.h"
#include "tests/support/reference/equations.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 17, LONGEST = MOST * 1024 + 1021 };

static const char *const modes[] = {"tree", "exact",   "mpi",
                                    "ring", "halving", "hier"};

typedef struct sum_job {
    bm_comm *comm;
    int workers;
    size_t n;
    const char *mode, *coordinator, *topology;
} sum_job;

/* Values do not matter, only that all have weight. */
static void add_all(bm_sum *sum, const sum_job *j)
{
    static const float zero[LONGEST];
    int rank = bm_comm_rank(j->comm);
    int last = bm_comm_first(j->comm, j->workers, rank + 1);

    for (int k = bm_comm_first(j->comm, j->workers, rank); k < last; k++)
        bm_sum_add(sum, k, zero, 1);
}

static bm_sum *open_sum(const sum_job *j)
{
    bm_sum *sum = NULL;

    assert_ok(bm_sum_open(&sum, j->comm, j->n, j->workers, j->mode,
                          j->coordinator, j->topology));
    return sum;
}

/* Seventeen ranks on few cores take long. */
static bool crowded(const bm_comm *comm)
{
    return bm_comm_size(comm) > 4;
}

/* ---- a worker on each rank ----------------------------------------------- */

/* The bytes that this rank transfers, and all P together; 0: unknown. */
typedef struct volume {
    uint64_t sent, total;
    bool each; /* `sent` is known */
} volume;

static bool is(const char *word, const char *other)
{
    return strcmp(word, other) == 0;
}

/* By the slices of each rank, c[r], as the formulas are written. */
static volume formula(const sum_job *j, const size_t *c)
{
    uint64_t P = (uint64_t)bm_comm_size(j->comm), n = j->n;
    uint64_t rank = (uint64_t)bm_comm_rank(j->comm), pairs = 0, parts = 1;
    uint64_t gathered = 4 * (P - 1) * c[rank];
    bool evenly = true;

    while (2 * parts <= P)
        parts *= 2;
    pairs = P - parts;
    for (uint64_t r = 0; r < P; r++)
        evenly =
            evenly && c[r] == (r < 2 * pairs && r % 2 == 1 ? 0 : n / parts);
    evenly = evenly && n % parts == 0;
    if (is(j->mode, "tree")) /* the parameter server, one or in shards */
        return (volume){4 * (n - c[rank]) + gathered, 8 * (P - 1) * n, true};
    if (is(j->mode, "exact"))
        return (volume){16 * (n - c[rank]) + gathered, 20 * (P - 1) * n, true};
    if (is(j->mode, "mpi"))
        return (volume){8 * (P - 1) * n / P + gathered, 0, true};
    if (is(j->mode, "ring"))
        return (volume){P == 1 ? 0 : 4 * (2 * n - c[rank] - c[(rank + 1) % P]),
                        8 * (P - 1) * n, true};
    if (is(j->mode, "halving") && rank < 2 * pairs && rank % 2 == 1)
        return (volume){4 * n, 8 * (P - 1) * n, true};
    return (volume){
        8 * (parts - 1) * (n / parts) +
            (is(j->mode, "halving") && rank < 2 * pairs ? 4 * n : 0),
        8 * (P - 1) * n, evenly && (pairs == 0 || is(j->mode, "halving"))};
}

static void copy(void *self, const bm_sum_piece *p)
{
    (void)self;
    memcpy(p->after, p->mean, p->n * sizeof *p->after);
}

static void learn_slices(const sum_job *j, const bm_sum *sum, size_t *out)
{
    double c[MOST] = {0};

    c[bm_comm_rank(j->comm)] = (double)bm_sum_slice(sum).count;
    assert_ok(bm_comm_sum(j->comm, c, (size_t)bm_comm_size(j->comm)));
    for (int r = 0; r < bm_comm_size(j->comm); r++)
        out[r] = (size_t)c[r];
}

/* Of one exchange: an update, or a scatter and a gather. */
static void check_exchange(const sum_job *j, bm_sum *sum, bool update,
                           const volume *expected, bool shared)
{
    bm_traffic before = bm_comm_traffic(j->comm), now, most;
    float x[LONGEST];
    double weight = 0, total = 0, formula[MOST];
    bm_slice slice;

    add_all(sum, j);
    if (update) {
        assert_ok(bm_sum_update(sum, copy, NULL, &weight));
    } else {
        assert_ok(bm_sum_scatter(sum, &slice));
        assert_ok(bm_sum_gather(sum, x));
    }
    now = bm_comm_traffic(j->comm);
    now.sent -= before.sent;
    now.shared -= before.shared;
    if (expected->each)
        assert_int_equal(now.sent + now.shared, expected->sent);
    if (!shared)
        assert_int_equal(now.shared, 0);
    total = (double)(now.sent + now.shared);
    assert_ok(bm_sum_bytes(formula, bm_comm_size(j->comm), j->n, j->workers,
                           j->mode, j->coordinator, j->topology));
    assert_true(formula[bm_comm_rank(j->comm)] == total);
    assert_ok(bm_comm_busiest(j->comm, before, &most));
    assert_true(most.sent + most.shared >= now.sent + now.shared);
    assert_ok(bm_comm_sum(j->comm, &total, 1));
    if (expected->total > 0)
        assert_true(total == (double)expected->total);
}

static void check_bytes(const sum_job *j, bool shared)
{
    bm_sum *sum = open_sum(j);
    size_t c[MOST] = {0};
    volume expected;

    learn_slices(j, sum, c);
    expected = formula(j, c);
    check_exchange(j, sum, true, &expected, shared);
    if (!crowded(j->comm))
        check_exchange(j, sum, false, &expected, shared);
    bm_sum_close(sum);
}

/* Each number of ranks that there are, up to all, with a worker on each. */
static void for_some_ranks(bool shared, const char *coordinator)
{
    bm_comm *all = NULL;
    int size = 0;

    assert_ok(bm_comm_open(&all));
    size = bm_comm_size(all);
    for (int ranks = crowded(all) ? 5 : 1; ranks <= size; ranks++) {
        size_t n = (size_t)ranks;
        const size_t sizes[] = {1024 * n, 1024 * n + 1021, n + 1, 1, 0};
        bm_comm *some = NULL;
        char grid[32];

        topology(ranks, grid);
        assert_ok(bm_comm_open_first(&some, ranks));
        if (!shared)
            pretend_hosts(some, 1);
        for (size_t i = 0; i < (crowded(all) ? 1 : 5); i++)
            for (size_t m = 0; bm_comm_size(some) == ranks && m < 6; m++) {
                sum_job j = {some,     ranks,       sizes[i],
                             modes[m], coordinator, NULL};

                if (is(j.mode, "hier"))
                    j.topology = grid;
                if (is(j.mode, "ring") && i == 0)
                    j.n = sizes[1]; /* its formula is for any parts */
                check_bytes(&j, shared);
            }
        bm_comm_close(some);
    }
    bm_comm_close(all);
}

static void test_bytes_sent_are_those_of_the_formulas(void **state)
{
    (void)state;
    for_some_ranks(false, "sharded");
}

static void test_bytes_read_in_shared_memory_count_as_sent(void **state)
{
    if (crowded(*state)) /* the small jobs test it */
        skip();
    for_some_ranks(true, "sharded");
}

/* Rank 0 gets N - 1 vectors and sends as many; with a ring they are a chain. */
static void test_one_server_sends_to_all(void **state)
{
    if (crowded(*state))
        skip();
    for_some_ranks(false, "root");
}

/* ---- several workers on a rank ------------------------------------------- */

/* All ranks, on one host or on as many. */
static void check_workers(bm_comm *comm, int workers, const char *coordinator,
                          bool shared)
{
    static const size_t sizes[] = {9 * 1024 + 1021, 3};
    const volume unknown = {0, 0, false};
    char grid[32];

    topology(workers, grid);
    if (!shared)
        pretend_hosts(comm, 1);
    FOR_EACH (m, modes)
        FOR_EACH (i, sizes) {
            sum_job j = {comm, workers, sizes[i], modes[m], coordinator, NULL};
            bm_sum *sum = NULL;

            if (is(j.mode, "hier"))
                j.topology = grid;
            sum = open_sum(&j);
            check_exchange(&j, sum, true, &unknown, shared);
            check_exchange(&j, sum, false, &unknown, shared);
            bm_sum_close(sum);
        }
}

static void
test_bytes_of_ranks_with_several_workers_follow_the_formulas(void **state)
{
    static const char *const where[] = {"sharded", "root"};
    int size = bm_comm_size(*state);
    const int workers[] = {size + 1, 2 * size, 2 * size + 3, 9};

    if (crowded(*state))
        return;
    FOR_EACH (k, workers)
        FOR_EACH (w, where) {
            check_workers(*state, workers[k], where[w], k % 2 == 0);
        }
}

/* By hand: 5 workers on 2 ranks, 2 and 3 of them, of 2 chunks of 1024. Rank 0's
 * two are one subtree, rank 1's are 2 3 and 4. In a ring of workers only the
 * last one of a rank has its neighbour elsewhere, and sends all but its own
 * slice; the chunks are slices 2 and 4. */
static void test_five_workers_on_two_ranks_are_counted_by_hand(void **state)
{
    enum { HALF = 1024, ALL = 2 * HALF };
    double bytes[2];

    (void)state;
    assert_ok(bm_sum_bytes(bytes, 2, ALL, 5, "tree", "sharded", NULL));
    assert_true(bytes[0] == 4 * (HALF + HALF));
    assert_true(bytes[1] == 4 * (2 * HALF + HALF));
    assert_ok(bm_sum_bytes(bytes, 2, ALL, 5, "tree", "root", NULL));
    assert_true(bytes[0] == 4 * ALL && bytes[1] == 4 * 2 * ALL);
    assert_ok(bm_sum_bytes(bytes, 2, ALL, 5, "exact", "sharded", NULL));
    assert_true(bytes[0] == 16 * HALF + 4 * HALF && bytes[1] == bytes[0]);
    assert_ok(bm_sum_bytes(bytes, 2, ALL, 5, "ring", "sharded", NULL));
    assert_true(bytes[0] == 4 * (ALL + 0));
    assert_true(bytes[1] == 4 * (ALL - HALF + ALL));
    assert_ok(bm_sum_bytes(bytes, 1, ALL, 5, "ring", "sharded", NULL));
    assert_true(bytes[0] == 0);
}

/* ---- runs ---------------------------------------------------------------- */

/* What the busiest rank transfers in an exchange of n floats. */
static double busiest(const bm_comm *comm, const char *mode, size_t n)
{
    double bytes[MOST], most = 0;

    assert_ok(bm_sum_bytes(bytes, bm_comm_size(comm), n, WORKERS, mode,
                           "sharded", NULL));
    for (int r = 0; r < bm_comm_size(comm); r++)
        most = fmax(most, bytes[r]);
    return most;
}

/* The counter of a run's second block, and updates of a server in it. */
static double count_block(bm_comm *comm, const char *mode,
                          const char *const *settings, double *updates)
{
    char sum[32];
    bm_block_report report;
    job j = open_job(comm, even, settings);

    snprintf(sum, sizeof sum, "job.sum=%s", mode);
    assert_ok(bm_config_set(j.config, sum));
    start_job(&j);
    for (int t = 0; t < 2; t++)
        assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
    if (updates != NULL)
        *updates = report.service->updates;
    close_job(&j);
    return (double)(report.traffic.sent + report.traffic.shared);
}

#define COUNT(mode, updates, ...)                                              \
    count_block(*state, mode, (const char *const[]){__VA_ARGS__, NULL}, updates)

static void test_a_run_sends_what_its_strategy_exchanges(void **state)
{
    enum { STEPS = 6 };

    for (size_t m = 0; m < 6 && !crowded(*state); m++) {
        double all = busiest(*state, modes[m], N), updates = 0;

        assert_true(COUNT(modes[m], NULL, "train.strategy=bmuf") == all);
        assert_true(COUNT(modes[m], NULL, "train.strategy=ssgd") ==
                    STEPS * all);
        assert_true(COUNT(modes[m], NULL, "train.strategy=average",
                          "block.fragments=2") ==
                    busiest(*state, modes[m], N - 1024));
        assert_true(COUNT(modes[m], NULL, "train.strategy=average",
                          "sgd.local_state=average") == 2 * all);
        assert_true(COUNT(modes[m], &updates, "train.strategy=softsync",
                          "softsync.n=2") == updates * all);
        assert_true(updates > 0);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_bytes_sent_are_those_of_the_formulas),
        TEST(test_bytes_read_in_shared_memory_count_as_sent),
        TEST(test_one_server_sends_to_all),
        TEST(test_bytes_of_ranks_with_several_workers_follow_the_formulas),
        TEST(test_five_workers_on_two_ranks_are_counted_by_hand),
        TEST(test_a_run_sends_what_its_strategy_exchanges),
    };

    return RUN_GROUP_MPI("bytes", tests);
}
