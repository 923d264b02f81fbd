/*
 * All modes of the ordered sum: the mean is within bounds that follow from its
 * roundings, and its bits do not depend on the number of ranks. For any number
 * of workers and ranks.
 */
#include "comm/sum/sum.h"
#include "tests/support/comms.h"
#include "tests/support/fixture.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 17, LONGEST = 18001 };

/* 2^-24: the largest relative error of rounding to float. */
static const double rounding = 0x1p-24;

typedef struct job {
    bm_comm *comm;
    int workers;
    size_t n;
    const char *mode, *coordinator, *topology;
} job;

static float elements[MOST][LONGEST];

static void make_elements(void)
{
    for (uint64_t k = 0; k < MOST; k++)
        for (uint64_t i = 0; i < LONGEST; i++) {
            uint64_t key = k << 32 | i;
            elements[k][i] =
                (float)((2 * uniform(key) - 1) * exp2(8 * uniform(~key) - 4));
        }
}

/* Longer vectors repeat. */
static float element(int worker, size_t i)
{
    return elements[worker][i % LONGEST];
}

static double weight(int worker)
{
    return worker % 5 == 1 ? 0 : 100 + 37 * worker % 50;
}

static void fill(int worker, size_t n, float *x)
{
    for (size_t from = 0; from < n; from += LONGEST)
        memcpy(x + from, elements[worker],
               (n - from < LONGEST ? n - from : LONGEST) * sizeof *x);
}

static void add_all(bm_sum *sum, const job *j)
{
    int rank = bm_comm_rank(j->comm);
    int last = bm_comm_first(j->comm, j->workers, rank + 1);

    for (int k = bm_comm_first(j->comm, j->workers, rank); k < last; k++) {
        float *x = bm_sum_room(sum);

        fill(k, j->n, x);
        bm_sum_add(sum, k, x, weight(k));
    }
}

static bm_sum *open_sum(const job *j)
{
    bm_sum *sum = NULL;

    assert_ok(bm_sum_open(&sum, j->comm, j->n, j->workers, j->mode,
                          j->coordinator, j->topology));
    return sum;
}

static void mean_of(const job *j, float *out)
{
    bm_sum *sum = open_sum(j);
    bm_slice slice;

    add_all(sum, j);
    assert_ok(bm_sum_scatter(sum, &slice));
    assert_ok(bm_sum_gather(sum, out));
    bm_sum_close(sum);
}

/* The mean in double, and the largest |x| in it. */
static double mean(const job *j, size_t i, double *largest)
{
    double sum = 0, total = 0;

    *largest = 0;
    for (int k = 0; k < j->workers; k++) {
        double x = element(k, i);

        sum += weight(k) * x;
        total += weight(k);
        if (weight(k) > 0)
            *largest = fmax(*largest, fabs(x));
    }
    return sum / total;
}

/* Tests that need one rank only run on rank 0. */
static void for_each_job(bm_comm *comm, void check(job *j))
{
    int size = bm_comm_size(comm);

    for (int workers = size; workers <= MOST; workers++) {
        size_t n = (size_t)workers;
        const size_t sizes[] = {LONGEST, n + 1, 0, 1, n - 1, n};

        for (size_t i = 0; i < (size == 1 ? 6 : 1); i++) {
            job j = {comm, workers, sizes[i], "ring", "sharded", NULL};
            check(&j);
        }
    }
}

/* ---- numbers ------------------------------------------------------------- */

/* Weighted means are at most the largest number, so each of the at most N - 1
 * roundings of an element has an error of at most `rounding` times it. Mode mpi
 * scales vectors before it adds them: one more rounding each. */
static void check_bound(job *j)
{
    static const char *const modes[] = {"tree", "mpi", "ring", "halving",
                                        "hier"};
    static double expected[LONGEST], bound[LONGEST];
    float got[LONGEST];

    for (size_t i = 0; i < j->n; i++) {
        expected[i] = mean(j, i, &bound[i]);
        bound[i] *= 1.001 * rounding * (j->workers + 1);
    }
    FOR_EACH (m, modes) {
        j->mode = modes[m];
        mean_of(j, got);
        for (size_t i = 0; i < j->n; i++)
            assert_true(fabs(got[i] - expected[i]) <= bound[i]);
    }
}

static void test_all_means_are_within_one_rounding_per_worker(void **state)
{
    for_each_job(*state, check_bound);
}

/* y of weight wy and x of weight wx. */
static void blend(size_t n, float *y, double wy, const float *x, double wx)
{
    for (size_t i = 0; wx > 0 && i < n; i++) {
        double a = wy / (wy + wx), b = wx / (wy + wx);
        y[i] = wy > 0 ? (float)(a * y[i] + b * x[i]) : x[i];
    }
}

/* Slice k is summed from worker k + 1 round the ring to worker k. */
static void fold(const job *j, float *out)
{
    size_t edge[MOST + 1];
    float x[LONGEST];

    assert_ok(bm_slices_cut(j->n, j->workers, j->coordinator, edge));
    for (int k = 0; k < j->workers; k++) {
        size_t from = edge[k], n = edge[k + 1] - from;
        double sum = 0;

        for (int i = 1; i <= j->workers; i++) {
            int worker = (k + i) % j->workers;

            fill(worker, j->n, x);
            blend(n, out + from, sum, x + from, weight(worker));
            sum += weight(worker);
        }
    }
}

static void check_ring(job *j)
{
    static const char *const where[] = {"sharded", "root"};
    float got[LONGEST], expected[LONGEST];
    char flat[16];

    FOR_EACH (w, where) {
        j->coordinator = where[w];
        j->mode = "ring";
        j->topology = NULL;
        fold(j, expected);
        mean_of(j, got);
        assert_memory_equal(got, expected, j->n * sizeof *got);
        j->mode = "hier";
        snprintf(flat, sizeof flat, w == 0 ? "1x%d" : "%dx1", j->workers);
        j->topology = flat;
        mean_of(j, got);
        assert_memory_equal(got, expected, j->n * sizeof *got);
    }
    j->topology = NULL;
}

static void test_ring_is_a_fold_and_so_are_grids_of_one_dimension(void **state)
{
    for_each_job(*state, check_ring);
}

/* Folding adds pairs of the first workers, then there is a tree. */
static void pair_up(const job *j, float *out)
{
    int parts = 1, folded = 0;
    float *x = NULL;
    double w[MOST];

    while (2 * parts <= j->workers)
        parts *= 2;
    folded = j->workers - parts;
    x = zeros((size_t)j->workers * LONGEST, sizeof *x);
    for (int v = 0; v < parts; v++) {
        int first = v < folded ? 2 * v : v + folded;

        fill(first, j->n, x + (size_t)v * LONGEST);
        w[v] = weight(first);
        if (v < folded) {
            fill(first + 1, j->n, out);
            blend(j->n, x + (size_t)v * LONGEST, w[v], out, weight(first + 1));
            w[v] += weight(first + 1);
        }
    }
    for (int d = 1; d < parts; d *= 2)
        for (int v = 0; v < parts; v += 2 * d) {
            blend(j->n, x + (size_t)v * LONGEST, w[v],
                  x + (size_t)(v + d) * LONGEST, w[v + d]);
            w[v] += w[v + d];
        }
    memcpy(out, x, j->n * sizeof *out);
    free(x);
}

static void check_halving(job *j)
{
    float got[LONGEST], expected[LONGEST];

    j->mode = "halving";
    pair_up(j, expected);
    mean_of(j, got);
    assert_memory_equal(got, expected, j->n * sizeof *got);
    j->coordinator = "root"; /* the same for all parts */
    mean_of(j, got);
    assert_memory_equal(got, expected, j->n * sizeof *got);
    j->mode = "tree";
    mean_of(j, got);
    if ((j->workers & (j->workers - 1)) == 0)
        assert_memory_equal(got, expected, j->n * sizeof *got);
}

static void test_halving_is_a_balanced_tree(void **state)
{
    for_each_job(*state, check_halving);
}

static void check_grid(job *j)
{
    static const char *const where[] = {"sharded", "root"};
    float got[LONGEST], expected[LONGEST];
    char grid[32];
    job alone = *j;

    topology(j->workers, grid);
    assert_ok(bm_comm_open_alone(&alone.comm));
    FOR_EACH (w, where) {
        j->mode = alone.mode = "hier";
        j->coordinator = alone.coordinator = where[w];
        j->topology = alone.topology = grid;
        mean_of(&alone, expected);
        mean_of(j, got);
        assert_memory_equal(got, expected, j->n * sizeof *got);
    }
    bm_comm_close(alone.comm);
    j->topology = NULL;
}

/* Grids; the ring and halving are tested above. */
static void test_bits_of_a_grid_do_not_depend_on_ranks(void **state)
{
    for_each_job(*state, check_grid);
}

/* Two workers per host: the automatic grid is 2 x hosts. */
static void test_hosts_decide_an_automatic_topology(void **state)
{
    bm_comm *comm = *state;
    int size = bm_comm_size(comm), each = size % 2 == 0 ? 2 : 1;
    float got[LONGEST], expected[LONGEST];
    char grid[32];
    job j = {comm, 2 * size, LONGEST, "hier", "sharded", grid};

    snprintf(grid, sizeof grid, "%dx%d", 2 * each, size / each);
    mean_of(&j, expected);
    j.topology = "auto";
    pretend_hosts(comm, each);
    mean_of(&j, got);
    assert_memory_equal(got, expected, sizeof got);
    if (size < 3)
        return;
    pretend_hosts(comm, size - 1); /* uneven */
    mean_of(&j, got);
    j.mode = "ring";
    j.topology = NULL;
    mean_of(&j, expected);
    assert_memory_equal(got, expected, sizeof got);
}

static void test_a_topology_needs_hier_and_product_n(void **state)
{
    bm_sum *sum = NULL;

    assert_int_equal(bm_sum_open(&sum, *state, 9, 24, "hier", "sharded", "4x5"),
                     BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "24 workers"));
    assert_int_equal(bm_sum_open(&sum, *state, 9, 24, "ring", "sharded", "4x6"),
                     BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "hier"));
    assert_null(sum);
}

/* ---- long vectors ---------------------------------------------------------
 */

/* More than a segment in each turn, and messages that do not divide it. */
static void test_long_transfers_travel_in_segments(void **state)
{
    static const char *const modes[] = {"ring", "halving", "hier"};
    static const size_t limits[] = {1 << 26, 9973};
    enum { LONG = 700001 };
    bm_comm *comm = *state, *one = NULL;
    int size = bm_comm_size(comm);
    float *got = zeros(LONG, sizeof *got), *expected = zeros(LONG, sizeof *got);

    assert_ok(bm_comm_open_alone(&one));
    FOR_EACH (m, modes)
        for (int each = 1; each <= 2; each++) {
            job j = {comm, size * each, LONG, modes[m], "sharded", NULL},
                alone = j;
            char grid[32];

            snprintf(grid, sizeof grid, "%dx%d", each, size);
            if (strcmp(j.mode, "hier") == 0)
                j.topology = alone.topology = grid;
            alone.comm = one;
            mean_of(&alone, expected);
            limit_messages(comm, limits[each - 1]);
            mean_of(&j, got);
            assert_memory_equal(got, expected, LONG * sizeof *got);
        }
    bm_comm_close(one);
    free(got);
    free(expected);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_all_means_are_within_one_rounding_per_worker),
        TEST(test_ring_is_a_fold_and_so_are_grids_of_one_dimension),
        TEST(test_halving_is_a_balanced_tree),
        TEST(test_bits_of_a_grid_do_not_depend_on_ranks),
        TEST(test_hosts_decide_an_automatic_topology),
        TEST(test_a_topology_needs_hier_and_product_n),
        TEST(test_long_transfers_travel_in_segments),
    };

    make_elements();
    return RUN_GROUP_MPI("reductions", tests);
}
