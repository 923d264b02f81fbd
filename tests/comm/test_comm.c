/* Transfers between the ranks of one job, in one message and in several. */
#include "comm/comm.h"
#include "tests/support/comms.h"
#include "tests/support/spans.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { N = 1000, MOST_RANKS = 8 };

/* What rank r sends as its k-th vector. */
static float element(int rank, int k, int i)
{
    return (float)(rank * 100 + k * 10) + (float)i / N;
}

static void fill(int rank, int k, float *x)
{
    for (int i = 0; i < N; i++)
        x[i] = element(rank, k, i);
}

static void check_transfers(bm_comm *comm)
{
    int rank = bm_comm_rank(comm), size = bm_comm_size(comm);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    float out[2][N], in[2][N], all[MOST_RANKS][N];

    assert_true(size <= MOST_RANKS);
    for (int k = 0; k < 2; k++) {
        fill(rank, k, out[k]);
        bm_comm_receive(comm, in[k], N, left);
        bm_comm_send(comm, out[k], N, right);
    }
    assert_ok(bm_comm_wait(comm));
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < N; i++)
            assert_true(in[k][i] == element(left, k, i));

    fill(rank, 2, all[rank]);
    for (int r = 0; r < size; r++)
        bm_comm_broadcast(comm, all[r], N, r);
    assert_ok(bm_comm_wait(comm));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < N; i++)
            assert_true(all[r][i] == element(r, 2, i));
}

/* Sums of integers, which do not depend on the library's order. */
static void check_sums(bm_comm *comm)
{
    int rank = bm_comm_rank(comm), size = bm_comm_size(comm);
    int ranks = size * (size - 1) / 2;
    double x[N];
    float y[N];
    int64_t z[N];
    int most[N];

    for (int i = 0; i < N; i++) {
        x[i] = y[i] = (float)(rank + i);
        z[i] = ((int64_t)1 << 50) + rank - i;
        most[i] = i % size == rank ? i : -1;
    }
    assert_ok(bm_comm_sum(comm, x, N));
    assert_ok(bm_comm_sum_floats(comm, y, N));
    assert_ok(bm_comm_sum_ints(comm, z, N));
    assert_ok(bm_comm_max(comm, most, N));
    for (int i = 0; i < N; i++) {
        assert_true(x[i] == ranks + size * i);
        assert_true(y[i] == (float)(ranks + size * i));
        assert_true(z[i] == ((int64_t)size << 50) + ranks - size * i);
        assert_int_equal(most[i], i);
    }
}

static void test_vectors_arrive_in_order_and_add_up(void **state)
{
    bm_comm *comm = NULL;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    check_transfers(comm);
    check_sums(comm);
    bm_comm_close(comm);
}

static void test_long_vectors_travel_in_several_messages(void **state)
{
    static const size_t limits[] = {1, 7, 333, N - 1, N};
    bm_comm *comm = NULL;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    FOR_EACH (i, limits) {
        limit_messages(comm, limits[i]);
        check_transfers(comm);
        check_sums(comm);
    }
    bm_comm_close(comm);
}

static void test_workers_are_hosted_in_even_ranges(void **state)
{
    bm_comm *comm = NULL;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    int size = bm_comm_size(comm);
    for (int workers = size; workers < 70; workers++) {
        assert_int_equal(bm_comm_first(comm, workers, 0), 0);
        assert_int_equal(bm_comm_first(comm, workers, size), workers);
        for (int r = 0; r < size; r++) {
            int n = bm_comm_first(comm, workers, r + 1) -
                    bm_comm_first(comm, workers, r);
            assert_true(n == workers / size || n == workers / size + 1);
        }
    }
    bm_comm_close(comm);
}

/* Rank r fails if bit r of `failing` is set, each with a status of its own. */
static void check_agreement(bm_comm *comm, int failing)
{
    int rank = bm_comm_rank(comm), lowest = 0;
    bm_status own[] = {BM_ERR_FORMAT, BM_ERR_IO, BM_ERR_MEMORY, BM_ERR_NUMERIC};
    bm_status status = BM_OK;
    char expected[40];

    while ((failing >> lowest) % 2 == 0)
        lowest++;
    if ((failing >> rank) % 2 == 1)
        status = BM_FAIL(own[rank % 4], "disk %d is gone", rank);
    assert_int_equal(bm_comm_agree(comm, status), own[lowest % 4]);
    snprintf(expected, sizeof expected, "disk %d is gone",
             status == BM_OK ? lowest : rank);
    assert_non_null(strstr(bm_last_error(), expected));
    snprintf(expected, sizeof expected, "rank %d: ", lowest);
    assert_true((strstr(bm_last_error(), expected) == NULL) ==
                (status != BM_OK));
}

static void test_all_ranks_agree_on_the_lowest_failure(void **state)
{
    bm_comm *comm = NULL;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    assert_ok(bm_comm_agree(comm, BM_OK));
    for (int failing = 1; failing < 1 << bm_comm_size(comm); failing++)
        check_agreement(comm, failing);
    assert_ok(bm_comm_agree(comm, BM_OK));
    bm_comm_close(comm);
}

/* One rank fails while the others poll for an alarm. */
static void test_an_alarm_is_for_the_next_agreement_only(void **state)
{
    bm_comm *comm = NULL;
    int last = 0;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    last = bm_comm_size(comm) - 1;
    for (int turn = 0; turn < 3; turn++) {
        bm_status status = BM_OK;

        assert_false(bm_comm_alarmed(comm));
        assert_ok(bm_comm_barrier(comm));
        if (bm_comm_rank(comm) == last) {
            status = BM_FAIL(BM_ERR_IO, "disk %d is gone", turn);
            bm_comm_alarm(comm);
        } else if (turn != 1) { /* then it is not noticed in time */
            while (!bm_comm_alarmed(comm))
                ;
        }
        assert_int_equal(bm_comm_agree(comm, status), BM_ERR_IO);
        assert_int_equal(bm_comm_agreed(comm), last);
    }
    assert_false(bm_comm_alarmed(comm));
    bm_comm_close(comm);
}

static void test_open_alone_gives_a_job_of_one(void **state)
{
    bm_comm *comm = NULL;

    (void)state;
    assert_ok(bm_comm_open_alone(&comm));
    assert_int_equal(bm_comm_rank(comm), 0);
    assert_int_equal(bm_comm_size(comm), 1);
    check_transfers(comm);
    check_sums(comm);
    bm_comm_close(comm);
}

static uint64_t sent(const bm_comm *comm)
{
    return bm_comm_traffic(comm).sent;
}

static void pass_on(bm_comm *comm, size_t n)
{
    int rank = bm_comm_rank(comm), size = bm_comm_size(comm);
    float out[N] = {0}, in[N];

    bm_comm_receive(comm, in, n, (rank + size - 1) % size);
    bm_comm_send(comm, out, n, (rank + 1) % size);
    assert_ok(bm_comm_wait(comm));
}

/* 7 numbers per message, which changes no count. */
static void test_bytes_include_those_of_twins(void **state)
{
    bm_comm *comm = NULL, *twin = NULL;
    uint64_t others = 0, total = 0;
    float x[N] = {0};
    bm_traffic most;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    others = (uint64_t)bm_comm_size(comm) - 1;
    limit_messages(comm, 7);
    pass_on(comm, N);
    assert_int_equal(sent(comm), total = 4 * N);
    assert_ok(bm_comm_twin(&twin, comm));
    pass_on(twin, 10);
    assert_int_equal(sent(twin), 40);
    assert_int_equal(sent(comm), total += 40);
    bm_comm_broadcast(comm, x, N, 0);
    assert_ok(bm_comm_wait(comm));
    if (bm_comm_rank(comm) == 0)
        total += 4 * N * others;
    assert_int_equal(sent(comm), total);
    assert_ok(bm_comm_sum_floats(comm, x, N));
    assert_int_equal(sent(comm), total += 8 * N * others / (others + 1));
    assert_ok(bm_comm_busiest(comm, (bm_traffic){.sent = 40}, &most));
    assert_int_equal(most.sent,
                     4 * N + 4 * N * others + 8 * N * others / (others + 1));
    assert_int_equal(most.shared, 0);
    bm_comm_close(twin);
    bm_comm_close(comm);
}

/* ---- who waits ----------------------------------------------------------- */

static bm_status wait_for_last(bm_comm *comm, int way)
{
    int last = bm_comm_size(comm) - 1, most = 0;
    float x = 0;

    if (way == 0)
        return bm_comm_agree(comm, BM_OK);
    if (way == 1)
        return bm_comm_broadcast_bytes(comm, &most, sizeof most, last);
    bm_comm_broadcast(comm, &x, 1, last);
    return bm_comm_wait(comm);
}

/* Outside any span of the caller. */
static void test_a_rank_that_waits_does_not_look_stuck(void **state)
{
    static const struct timespec late = {0, 800000000};
    bm_comm *comm = NULL;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    for (int way = 0; way < 3; way++) {
        double longest = 0;

        assert_ok(bm_comm_barrier(comm));
        spans_begin();
        if (bm_comm_rank(comm) == bm_comm_size(comm) - 1)
            nanosleep(&late, NULL);
        assert_ok(wait_for_last(comm, way));
        longest = spans_end();
        if (bm_comm_rank(comm) == bm_comm_size(comm) - 1)
            assert_true(longest >= 0.8);
        else
            assert_true(longest < 0.6);
    }
    bm_comm_close(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors_arrive_in_order_and_add_up),
        cmocka_unit_test(test_long_vectors_travel_in_several_messages),
        cmocka_unit_test(test_workers_are_hosted_in_even_ranges),
        cmocka_unit_test(test_all_ranks_agree_on_the_lowest_failure),
        cmocka_unit_test(test_an_alarm_is_for_the_next_agreement_only),
        cmocka_unit_test(test_open_alone_gives_a_job_of_one),
        cmocka_unit_test(test_bytes_include_those_of_twins),
        cmocka_unit_test(test_a_rank_that_waits_does_not_look_stuck),
    };
    return RUN_GROUP_MPI("comm", tests);
}
