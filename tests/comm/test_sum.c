/*
 * The ordered sum, on any number of ranks. Every rank can compute every worker's
 * vector, so each computes the expected result by itself: the tree by recursion,
 * means in double.
 */
#include "comm/sum/sum.h"
#include "tests/support/comms.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { LONGEST = 5000, WORKERS = 40 };

static const int worker_counts[] = {1, 2, 3, 5, 8, 16};
static const size_t lengths[] = {0, 1, 1024, LONGEST};
static const char *const modes[] = {"tree", "exact",   "mpi",
                                    "ring", "halving", "hier"};
static const char *const coordinators[] = {"sharded", "root"};

/* The workers of a test: their vectors, weights and order. */
typedef struct crew {
    int workers;
    size_t n;
    double spread;          /* magnitudes go from 2^-spread to 2^spread */
    int order[WORKERS];     /* worker k has vector number order[k] */
    double weight[WORKERS]; /* of vector number k */
} crew;

/* Some vectors are large and some are small, and so are their elements. */
static float element(const crew *c, int number, size_t i)
{
    uint64_t key = (uint64_t)number * 1000003u + 3 * i;
    double size = uniform((uint64_t)number) + uniform(key) - 1;

    return (float)((2 * uniform(key + 1) - 1) * exp2(c->spread * size));
}

static void fill(const crew *c, int number, float *x)
{
    for (size_t i = 0; i < c->n; i++)
        x[i] = element(c, number, i);
}

static crew make(int workers, size_t n)
{
    crew c = {.workers = workers, .n = n, .spread = 10};

    for (int k = 0; k < workers; k++) {
        c.order[k] = k;
        c.weight[k] = 100 + 37 * k % 50;
    }
    if (workers > 1)
        c.weight[1] = 0; /* without data */
    return c;
}

static void add_all(bm_sum *sum, bm_comm *comm, const crew *c)
{
    int rank = bm_comm_rank(comm);
    int last = bm_comm_first(comm, c->workers, rank + 1);
    float x[LONGEST];

    for (int k = bm_comm_first(comm, c->workers, rank); k < last; k++) {
        fill(c, c->order[k], x);
        bm_sum_add(sum, k, x, c->weight[c->order[k]]);
    }
}

/* The mean of the crew's vectors as bm_sum computes it, twice. */
static void run(bm_comm *comm, const crew *c, const char *mode,
                const char *coordinator, float *out)
{
    bm_sum *sum = NULL;
    bm_slice slice;
    float first[LONGEST] = {0};

    assert_ok(
        bm_sum_open(&sum, comm, c->n, c->workers, mode, coordinator, NULL));
    for (int round = 0; round < 2; round++) {
        add_all(sum, comm, c);
        assert_ok(bm_sum_scatter(sum, &slice));
        assert_ok(bm_sum_gather(sum, round == 0 ? first : out));
    }
    assert_memory_equal(first, out, c->n * sizeof *out);
    bm_sum_close(sum);
}

/* The tree over workers [from, to) by recursion: its mean and its weight. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static double tree(const crew *c, int from, int to, float *out)
{
    float right[LONGEST];
    double wl = 0, wr = 0;
    int half = 1;

    if (to - from == 1) {
        fill(c, c->order[from], out);
        return c->weight[c->order[from]];
    }
    while (2 * half < to - from)
        half *= 2;
    wl = tree(c, from, from + half, out);
    wr = tree(c, from + half, to, right);
    for (size_t i = 0; wl + wr > 0 && i < c->n; i++) {
        double a = wl / (wl + wr), b = wr / (wl + wr);
        out[i] = (float)(a * out[i] + b * right[i]);
    }
    return wl + wr;
}

static double mean(const crew *c, size_t i)
{
    double sum = 0, total = 0;

    for (int k = 0; k < c->workers; k++) {
        sum += c->weight[k] * element(c, k, i);
        total += c->weight[k];
    }
    return total > 0 ? sum / total : 0;
}

/* Floats keep 24 bits of the largest number; exact sums round only once. */
static void assert_near_mean(const crew *c, const char *mode, const float *x)
{
    bool exact = strcmp(mode, "exact") == 0;
    double largest = exp2(c->spread);

    for (size_t i = 0; i < c->n; i++) {
        double m = mean(c, i);
        double bound =
            exact ? 0x1p-24 * fabs(m) + 1e-13 * largest : 0x1p-20 * largest;
        assert_true(fabs(x[i] - m) <= bound);
    }
}

static bool too_many_ranks(bm_comm *comm, int workers)
{
    bm_sum *sum = NULL;

    if (workers >= bm_comm_size(comm))
        return false;
    assert_int_equal(
        bm_sum_open(&sum, comm, 10, workers, "tree", "sharded", NULL),
        BM_ERR_CONFIG);
    assert_null(sum);
    return true;
}

static void test_tree_has_the_bits_of_the_recursion(void **state)
{
    float got[LONGEST], expected[LONGEST];

    FOR_EACH (w, worker_counts)
        FOR_EACH (l, lengths)
            FOR_EACH (k, coordinators) {
                crew c = make(worker_counts[w], lengths[l]);

                if (too_many_ranks(*state, c.workers))
                    continue;
                (void)tree(&c, 0, c.workers, expected);
                run(*state, &c, "tree", coordinators[k], got);
                assert_memory_equal(got, expected, c.n * sizeof *got);
            }
}

static void test_tree_works_for_any_number_of_workers(void **state)
{
    float got[LONGEST], expected[LONGEST];

    for (int workers = bm_comm_size(*state); workers <= WORKERS; workers++) {
        crew c = make(workers, 1500);

        (void)tree(&c, 0, workers, expected);
        run(*state, &c, "tree", "sharded", got);
        assert_memory_equal(got, expected, c.n * sizeof *got);
    }
}

/* Otherwise the test above could not fail. */
static void test_order_matters_to_these_numbers(void **state)
{
    crew c = make(WORKERS, LONGEST), turned = c;
    float a[LONGEST], b[LONGEST];

    (void)state;
    for (int k = 0; k < WORKERS; k++)
        turned.order[k] = (k + 5) % WORKERS;
    (void)tree(&c, 0, WORKERS, a);
    (void)tree(&turned, 0, WORKERS, b);
    assert_memory_not_equal(a, b, sizeof a);
}

static void test_every_mode_gives_the_mean(void **state)
{
    float got[LONGEST];

    FOR_EACH (m, modes)
        FOR_EACH (w, worker_counts)
            FOR_EACH (l, lengths)
                FOR_EACH (k, coordinators) {
                    crew c = make(worker_counts[w], lengths[l]);
                    if (too_many_ranks(*state, c.workers))
                        continue;
                    run(*state, &c, modes[m], coordinators[k], got);
                    assert_near_mean(&c, modes[m], got);
                }
}

static void test_exact_bits_do_not_depend_on_order_or_ranks(void **state)
{
    static const double spreads[] = {0, 10, 100};
    float got[LONGEST], alone[LONGEST];
    bm_comm *one = NULL;

    assert_ok(bm_comm_open_alone(&one));
    FOR_EACH (s, spreads)
        FOR_EACH (w, worker_counts)
            FOR_EACH (k, coordinators) {
                crew c = make(worker_counts[w], LONGEST);

                c.spread = spreads[s];
                if (too_many_ranks(*state, c.workers))
                    continue;
                run(one, &c, "exact", "sharded", alone);
                for (int turn = 0; turn < c.workers; turn++) {
                    for (int i = 0; i < c.workers; i++)
                        c.order[i] = (c.workers - i + turn) % c.workers;
                    run(*state, &c, "exact", coordinators[k], got);
                    assert_memory_equal(got, alone, sizeof got);
                }
            }
    bm_comm_close(one);
}

static void test_message_length_changes_no_bits(void **state)
{
    static const size_t limits[] = {1000, 1, 37};
    crew c = make(11, LONGEST);
    float whole[LONGEST], pieces[LONGEST];
    bm_comm *comm = *state;

    FOR_EACH (m, modes)
        FOR_EACH (l, limits) {
            c.n = limits[l] == 1 ? 100 : LONGEST;
            limit_messages(comm, LONGEST);
            run(comm, &c, modes[m], "sharded", whole);
            limit_messages(comm, limits[l]);
            run(comm, &c, modes[m], "sharded", pieces);
            if (strcmp(modes[m], "mpi") != 0)
                assert_memory_equal(whole, pieces, c.n * sizeof whole[0]);
            assert_near_mean(&c, modes[m], pieces);
        }
}

static void test_slices_cover_the_vector_once(void **state)
{
    crew c = make(9, LONGEST);
    bm_comm *comm = *state;
    float got[LONGEST];

    FOR_EACH (m, modes)
        FOR_EACH (k, coordinators) {
            bm_sum *sum = NULL;
            bm_slice s;

            assert_ok(bm_sum_open(&sum, comm, c.n, c.workers, modes[m],
                                  coordinators[k], NULL));
            add_all(sum, comm, &c);
            assert_ok(bm_sum_scatter(sum, &s));
            for (size_t i = 0; i < s.count; i++) {
                assert_true(fabs(s.x[i] - mean(&c, s.offset + i)) <=
                            0x1p-20 * exp2(c.spread));
                s.x[i] = (float)(s.offset + i); /* what a coordinator does */
            }
            if (strcmp(coordinators[k], "root") == 0)
                assert_int_equal(s.count,
                                 bm_comm_rank(comm) == 0 ? LONGEST : 0);
            memset(got, 0, sizeof got);
            assert_ok(bm_sum_gather(sum, got));
            for (size_t i = 0; i < LONGEST; i++)
                assert_true(got[i] == (float)i);
            bm_sum_close(sum);
        }
}

static void test_mean_of_one_vector_is_that_vector(void **state)
{
    crew c = make(8, LONGEST);
    float got[LONGEST], x[LONGEST];

    for (int only = 0; only < c.workers; only++) {
        memset(c.weight, 0, sizeof c.weight);
        c.weight[only] = 1000003;
        fill(&c, only, x);
        FOR_EACH (m, modes) {
            run(*state, &c, modes[m], "sharded", got);
            if (strcmp(modes[m], "exact") != 0)
                assert_memory_equal(got, x, sizeof x);
            assert_near_mean(&c, modes[m], got);
        }
    }
}

static void test_tree_of_equal_vectors_is_that_vector(void **state)
{
    crew c = make(9, LONGEST);
    float got[LONGEST], x[LONGEST];

    memset(c.order, 0, sizeof c.order);
    fill(&c, 0, x);
    run(*state, &c, "tree", "sharded", got);
    assert_memory_equal(got, x, sizeof x);
}

static void test_worker_without_weight_does_not_contribute(void **state)
{
    bm_comm *comm = *state;
    int workers = 8, rank = bm_comm_rank(comm);
    float x[3000], got[3000];

    FOR_EACH (m, modes) {
        bm_sum *sum = NULL;
        bm_slice s;
        int last = bm_comm_first(comm, workers, rank + 1);

        assert_ok(
            bm_sum_open(&sum, comm, 3000, workers, modes[m], "sharded", NULL));
        for (int k = bm_comm_first(comm, workers, rank); k < last; k++) {
            for (int i = 0; i < 3000; i++)
                x[i] = k % 2 == 0 ? NAN : (float)k;
            bm_sum_add(sum, k, x, k % 2 == 0 ? 0 : 10);
        }
        assert_ok(bm_sum_scatter(sum, &s));
        assert_true(s.weight == 40);
        assert_ok(bm_sum_gather(sum, got));
        for (int i = 0; i < 3000; i++)
            assert_true(near(got[i], 4, 1e-6));
        bm_sum_close(sum);
    }
}

static void test_no_weight_at_all_gives_zeros(void **state)
{
    crew c = make(WORKERS, LONGEST);
    float got[LONGEST];

    memset(c.weight, 0, sizeof c.weight);
    FOR_EACH (m, modes) {
        run(*state, &c, modes[m], "sharded", got);
        for (size_t i = 0; i < LONGEST; i++)
            assert_true(got[i] == 0);
    }
}

/* The mean of x[0], x[1], ..., one from each worker. */
static float mean_of(bm_comm *comm, const char *mode, const float *x,
                     int workers)
{
    int rank = bm_comm_rank(comm);
    int last = bm_comm_first(comm, workers, rank + 1);
    bm_sum *sum = NULL;
    bm_slice s;
    float got = 0;

    assert_ok(bm_sum_open(&sum, comm, 1, workers, mode, "sharded", NULL));
    for (int k = bm_comm_first(comm, workers, rank); k < last; k++)
        bm_sum_add(sum, k, &x[k], 1);
    assert_ok(bm_sum_scatter(sum, &s));
    assert_ok(bm_sum_gather(sum, &got));
    bm_sum_close(sum);
    return got;
}

static void test_exact_keeps_what_floats_cancel(void **state)
{
    static const float x[8] = {0x1p40f, 3, -0x1p40f, 5};

    assert_true(mean_of(*state, "exact", x, 8) == 1);
    assert_true(mean_of(*state, "tree", x, 8) == 0);
}

static void test_a_nan_makes_the_mean_nan_or_infinite(void **state)
{
    static const float x[8] = {1, 2, INFINITY}, y[8] = {1, NAN, 3, 0x1p127f};

    FOR_EACH (m, modes) {
        assert_false(isfinite(mean_of(*state, modes[m], x, 8)));
        assert_false(isfinite(mean_of(*state, modes[m], y, 8)));
    }
}

static void test_unknown_names_are_rejected(void **state)
{
    bm_sum *sum = NULL;

    assert_int_equal(bm_sum_open(&sum, *state, 1, 8, "telepathy", "root", NULL),
                     BM_ERR_CONFIG);
    assert_int_equal(bm_sum_open(&sum, *state, 1, 8, "tree", "nobody", NULL),
                     BM_ERR_CONFIG);
    assert_int_equal(
        bm_sum_open(&sum, *state, 1, 1 << 20, "exact", "root", NULL),
        BM_ERR_CONFIG);
    assert_null(sum);
}

/* ---- the common vector -------------------------------------------------- */

/* common += 2 mean */
static void twice(void *self, const bm_sum_piece *p)
{
    size_t *seen = self;

    assert_true(p->n <= BM_SUM_CHUNK && p->offset % BM_SUM_CHUNK == 0);
    for (size_t i = 0; i < p->n; i++)
        p->after[i] = p->before[i] + 2 * p->mean[i];
    *seen += p->n;
}

/* Several updates, each with the vectors in another order, against the mean of a
 * scatter and a gather. */
static void check_updates(bm_comm *comm, const char *mode,
                          const char *coordinator)
{
    enum { ROUNDS = 6 };
    crew c = make(9, LONGEST);
    int rank = bm_comm_rank(comm), last = bm_comm_first(comm, 9, rank + 1);
    float expected[LONGEST] = {0}, mean[LONGEST];
    bm_sum *sum = NULL;

    assert_ok(bm_sum_open(&sum, comm, c.n, 9, mode, coordinator, NULL));
    for (int t = 0; t < ROUNDS; t++) {
        double weight = 0, total = 0;
        size_t seen = 0;

        for (int k = 0; k < 9; k++) {
            c.order[k] = (k + t) % 9;
            total += c.weight[k];
        }
        run(comm, &c, mode, coordinator, mean);
        for (int k = bm_comm_first(comm, 9, rank); k < last; k++) {
            float *x = bm_sum_room(sum);

            fill(&c, c.order[k], x);
            bm_sum_add(sum, k, x, c.weight[c.order[k]]);
        }
        assert_ok(bm_sum_update(sum, twice, &seen, &weight));
        assert_true(weight == total && seen == bm_sum_slice(sum).count);
        for (size_t i = 0; i < c.n; i++)
            expected[i] += 2 * mean[i];
        assert_memory_equal(bm_sum_common(sum), expected, sizeof expected);
    }
    bm_sum_close(sum);
}

static void check_all_updates(bm_comm *comm)
{
    FOR_EACH (m, modes)
        FOR_EACH (k, coordinators)
            check_updates(comm, modes[m], coordinators[k]);
}

static void test_update_applies_work_and_all_ranks_see_it(void **state)
{
    check_all_updates(*state);
}

/* One, two or three ranks per host: some slices are shared, others are sent. */
static void test_updates_are_the_same_over_many_hosts(void **state)
{
    for (int ranks = 1; ranks <= 3; ranks++) {
        pretend_hosts(*state, ranks);
        check_all_updates(*state);
    }
}

/* Without files for shared memory, as if it were short, ranks send messages. */
static void test_updates_work_without_shared_memory(void **state)
{
    struct rlimit before, none;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    check_all_updates(*state);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static void test_update_without_weight_changes_nothing(void **state)
{
    bm_comm *comm = *state;
    int rank = bm_comm_rank(comm), last = bm_comm_first(comm, 8, rank + 1);

    FOR_EACH (m, modes) {
        bm_sum *sum = NULL;
        bm_slice own;
        double weight = 1;
        size_t seen = 0;

        assert_ok(bm_sum_open(&sum, comm, 3000, 8, modes[m], "sharded", NULL));
        own = bm_sum_slice(sum);
        for (size_t i = own.offset; i < own.offset + own.count; i++)
            bm_sum_common(sum)[i] = (float)i;
        assert_ok(bm_sum_allgather(sum));
        for (int k = bm_comm_first(comm, 8, rank); k < last; k++)
            bm_sum_add(sum, k, bm_sum_room(sum), 0);
        assert_ok(bm_sum_update(sum, twice, &seen, &weight));
        assert_true(weight == 0 && seen == 0);
        for (int i = 0; i < 3000; i++)
            assert_true(bm_sum_common(sum)[i] == (float)i);
        bm_sum_close(sum);
    }
}

/* ---- lanes --------------------------------------------------------------- */

enum { LANES = 3, LONG = 4 * LANES * (1 << 15) + 4096 };

static float *make_vector(const crew *c, int number)
{
    float *x = zeros(LONG, sizeof *x);

    for (size_t i = 0; i < LONG; i++)
        x[i] = element(c, number, i % LONGEST) * (1 + (float)(i % 7));
    return x;
}

static float blend_two(float y, double wy, float x, double wx)
{
    double a = wy / (wy + wx), b = wx / (wy + wx);
    return (float)(a * y + b * x);
}

/* 2 x 2 workers: the owner of a slice adds its neighbour in the first dimension,
 * and then the sum of the other two, which its neighbour in the second one has
 * made in the same way. */
static void expect(float *const *x, const double *w, float *out)
{
    for (size_t i = 0; i < LONG; i++) {
        int o = (int)(i / (LONG / 4)), a = o ^ 1, b = o ^ 2, d = o ^ 3;
        float near_two = blend_two(x[o][i], w[o], x[a][i], w[a]);
        float far_two = blend_two(x[b][i], w[b], x[d][i], w[d]);

        out[i] = blend_two(near_two, w[o] + w[a], far_two, w[b] + w[d]);
    }
}

static void copy_mean(void *self, const bm_sum_piece *p)
{
    (void)self;
    memcpy(p->after, p->mean, p->n * sizeof *p->after);
}

static void test_lanes_keep_the_order_of_a_grid(void **state)
{
    bm_comm *comm = *state;
    const double w[] = {100, 137, 124, 111};
    crew c = make(4, LONGEST);
    float *x[4], *expected = zeros(LONG, sizeof *expected);
    float *got = zeros(LONG, sizeof *got);
    int rank = bm_comm_rank(comm);

    for (int k = 0; k < 4; k++)
        x[k] = make_vector(&c, k);
    expect(x, w, expected);
    for (int hosts = 0; hosts < 6; hosts++) { /* each twice */
        bm_sum *sum = NULL;
        bm_slice own;
        double weight = 0;

        if (hosts >= 2)
            pretend_hosts(comm, hosts / 2);
        assert_ok(bm_sum_open(&sum, comm, LONG, 4, "hier", "sharded", "2x2"));
        for (int k = bm_comm_first(comm, 4, rank);
             k < bm_comm_first(comm, 4, rank + 1); k++)
            bm_sum_add(sum, k, x[k], w[k]);
        if (hosts % 2 == 0) {
            assert_ok(bm_sum_update(sum, copy_mean, NULL, &weight));
            memcpy(got, bm_sum_common(sum), LONG * sizeof *got);
        } else {
            assert_ok(bm_sum_scatter(sum, &own));
            assert_ok(bm_sum_gather(sum, got));
        }
        assert_memory_equal(got, expected, LONG * sizeof *got);
        bm_sum_close(sum);
    }
    for (int k = 0; k < 4; k++)
        free(x[k]);
    free(expected);
    free(got);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_tree_has_the_bits_of_the_recursion),
        TEST(test_tree_works_for_any_number_of_workers),
        TEST(test_order_matters_to_these_numbers),
        TEST(test_every_mode_gives_the_mean),
        TEST(test_exact_bits_do_not_depend_on_order_or_ranks),
        TEST(test_message_length_changes_no_bits),
        TEST(test_slices_cover_the_vector_once),
        TEST(test_mean_of_one_vector_is_that_vector),
        TEST(test_tree_of_equal_vectors_is_that_vector),
        TEST(test_worker_without_weight_does_not_contribute),
        TEST(test_no_weight_at_all_gives_zeros),
        TEST(test_exact_keeps_what_floats_cancel),
        TEST(test_a_nan_makes_the_mean_nan_or_infinite),
        TEST(test_unknown_names_are_rejected),
        TEST(test_update_applies_work_and_all_ranks_see_it),
        TEST(test_updates_are_the_same_over_many_hosts),
        TEST(test_updates_work_without_shared_memory),
        TEST(test_update_without_weight_changes_nothing),
        TEST(test_lanes_keep_the_order_of_a_grid),
    };
    return RUN_GROUP_MPI("sum", tests);
}
