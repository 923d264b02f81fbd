/* The comm thread runs collective work in order, while its caller computes. */
#include "comm/comm_thread.h"
#include "comm/sum/sum.h"
#include "tests/support/support.h"

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { JOBS = 3 * BM_COMM_THREAD_ROOM, N = 5000 };

/* An MPI library that supports one thread only. */
int __real_MPI_Query_thread(int *level);
int __wrap_MPI_Query_thread(int *level);
static bool one_thread;

int __wrap_MPI_Query_thread(int *level)
{
    int code = __real_MPI_Query_thread(level);

    if (one_thread)
        *level = MPI_THREAD_FUNNELED;
    return code;
}

static bm_comm *comm;
static bm_comm_thread *thread;

static int set_up(void **state)
{
    (void)state;
    assert_ok(bm_comm_open(&comm));
    assert_ok(bm_comm_thread_open(&thread, comm));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    bm_comm_thread_close(thread);
    bm_comm_close(comm);
    return 0;
}

/* ---- work ---------------------------------------------------------------- */

/* Which work ended, on which thread; owned by the comm thread until a wait. */
typedef struct line {
    int order[JOBS], n;
    pthread_t thread;
} line;

typedef struct job {
    line *line;
    double sum; /* of all ranks' rank + k */
    int k;
    bm_status status; /* to fail with */
} job;

static bm_status add_ranks(void *self)
{
    job *j = self;

    j->line->thread = pthread_self();
    j->line->order[j->line->n++] = j->k;
    j->sum = bm_comm_rank(bm_comm_thread_comm(thread)) + j->k;
    BM_TRY(bm_comm_sum(bm_comm_thread_comm(thread), &j->sum, 1));
    if (j->status != BM_OK)
        return BM_FAIL(j->status, "job %d is ill", j->k);
    return BM_OK;
}

static double sum_of_ranks(int k)
{
    int size = bm_comm_size(comm);

    return size * (size - 1) / 2. + (double)size * k;
}

static void check_jobs(const job *j, int n)
{
    assert_int_equal(j->line->n, n);
    for (int k = 0; k < n; k++) {
        assert_int_equal(j->line->order[k], k);
        assert_true(j[k].sum == sum_of_ranks(k));
    }
}

/* More work than the queue holds; the caller sums, too. */
static void test_work_runs_in_order_beside_the_caller(void **state)
{
    line l = {0};
    job jobs[JOBS];
    int64_t first = 0;

    (void)state;
    for (int k = 0; k < JOBS; k++) {
        double own = k;
        int64_t ticket = 0;

        jobs[k] = (job){.line = &l, .k = k};
        ticket = bm_comm_thread_put(thread, add_ranks, &jobs[k]);
        first = k == 0 ? ticket : first;
        assert_true(ticket == first + k);
        assert_ok(bm_comm_sum(comm, &own, 1));
        assert_true(own == bm_comm_size(comm) * (double)k);
    }
    assert_ok(bm_comm_thread_wait_all(thread));
    check_jobs(jobs, JOBS);
    assert_false(pthread_equal(l.thread, pthread_self()));
}

/* ---- waiting ------------------------------------------------------------- */

/* A gate at which work waits until its caller opens it. */
static atomic_bool gate;

static bm_status wait_at_the_gate(void *self)
{
    while (!atomic_load(&gate))
        sched_yield();
    return add_ranks(self);
}

/* Otherwise this would wait for ever. */
static void test_wait_returns_while_later_work_is_running(void **state)
{
    line l = {0};
    job jobs[3] = {{&l, 0, 0, BM_OK}, {&l, 0, 1, BM_OK}, {&l, 0, 2, BM_OK}};
    int64_t second = 0;

    (void)state;
    atomic_store(&gate, false);
    (void)bm_comm_thread_put(thread, add_ranks, &jobs[0]);
    second = bm_comm_thread_put(thread, add_ranks, &jobs[1]);
    (void)bm_comm_thread_put(thread, wait_at_the_gate, &jobs[2]);
    assert_ok(bm_comm_thread_wait(thread, second));
    assert_true(jobs[1].sum == sum_of_ranks(1));
    atomic_store(&gate, true);
    assert_ok(bm_comm_thread_wait_all(thread));
    check_jobs(jobs, 3);
    assert_ok(bm_comm_thread_wait(thread, second)); /* again */
}

/* ---- failures ------------------------------------------------------------ */

static void
test_the_first_failure_is_reported_once_and_the_rest_runs(void **state)
{
    line l = {0};
    job jobs[6];

    (void)state;
    for (int k = 0; k < 6; k++) {
        jobs[k] = (job){.line = &l, .k = k};
        if (k == 2 || k == 4)
            jobs[k].status = k == 2 ? BM_ERR_DEVICE : BM_ERR_IO;
        (void)bm_comm_thread_put(thread, add_ranks, &jobs[k]);
    }
    assert_int_equal(bm_comm_thread_wait_all(thread), BM_ERR_DEVICE);
    assert_string_equal(bm_last_message(), "job 2 is ill");
    check_jobs(jobs, 6);
    assert_ok(bm_comm_thread_wait_all(thread));
}

/* One rank fails, and all ranks get its message. */
static void test_a_failure_on_one_rank_reaches_all(void **state)
{
    int last = bm_comm_size(comm) - 1;
    line l = {0};
    job j = {.line = &l};
    char expected[40] = "job 0 is ill";

    (void)state;
    if (bm_comm_rank(comm) == last)
        j.status = BM_ERR_MEMORY;
    else
        snprintf(expected, sizeof expected, "rank %d: job 0 is ill", last);
    (void)bm_comm_thread_put(thread, add_ranks, &j);
    assert_int_equal(bm_comm_agree(comm, bm_comm_thread_wait_all(thread)),
                     BM_ERR_MEMORY);
    assert_string_equal(bm_last_message(), expected);
    assert_int_equal(bm_comm_agreed(comm), last);
}

static void test_closing_runs_the_work_that_was_put(void **state)
{
    line l = {0};
    job jobs[20];

    (void)state;
    atomic_store(&gate, false);
    for (int k = 0; k < 20; k++) {
        jobs[k] = (job){.line = &l, .k = k, .status = BM_ERR_IO};
        (void)bm_comm_thread_put(thread, k == 0 ? wait_at_the_gate : add_ranks,
                                 &jobs[k]);
    }
    atomic_store(&gate, true);
    bm_comm_thread_close(thread);
    check_jobs(jobs, 20);
    assert_ok(bm_comm_thread_open(&thread, comm));
}

static void test_an_mpi_library_for_one_thread_is_rejected(void **state)
{
    bm_comm_thread *none = NULL;
    bm_status status = BM_OK;

    (void)state;
    one_thread = bm_comm_rank(comm) == bm_comm_size(comm) - 1;
    status = bm_comm_thread_open(&none, comm);
    one_thread = false;
    assert_int_equal(status, BM_ERR_UNSUPPORTED);
    assert_non_null(strstr(bm_last_message(), "one thread only"));
    assert_null(none);
}

/* ---- use by a sum -------------------------------------------------------- */

static bm_status update(void *self)
{
    return bm_sum_allgather(self);
}

/* Each rank writes its slice of a common vector, while this thread sums, too. */
static void test_an_ordered_sum_runs_on_the_comm_thread(void **state)
{
    int size = bm_comm_size(comm);
    bm_sum *sum = NULL;
    bm_slice own;

    (void)state;
    assert_ok(bm_sum_open(&sum, bm_comm_thread_comm(thread), N, size, "tree",
                          "sharded", NULL));
    own = bm_sum_slice(sum);
    for (int round = 1; round <= 20; round++) {
        double ranks = 1;
        float *common = bm_sum_common(sum);

        for (size_t i = 0; i < own.count; i++)
            common[own.offset + i] = (float)round * (float)(own.offset + i);
        (void)bm_comm_thread_put(thread, update, sum);
        assert_ok(bm_comm_sum(comm, &ranks, 1));
        assert_true(ranks == size);
        assert_ok(bm_comm_thread_wait_all(thread));
        for (size_t i = 0; i < N; i++)
            assert_true(common[i] == (float)round * (float)i);
        assert_ok(bm_comm_barrier(comm)); /* before the vector is overwritten */
    }
    bm_sum_close(sum);
}

static bm_status add_floats(void *self)
{
    return bm_comm_sum_floats(bm_comm_thread_comm(thread), self, N);
}

/* As if it had gone through the comm. */
static void test_bytes_of_the_comm_thread_count_for_the_caller(void **state)
{
    size_t size = (size_t)bm_comm_size(comm);
    bm_traffic before = bm_comm_traffic(comm);
    static float x[N];

    (void)state;
    for (int i = 0; i < 2; i++)
        (void)bm_comm_thread_put(thread, add_floats, x);
    assert_ok(bm_comm_thread_wait_all(thread));
    assert_true(bm_comm_traffic(comm).sent - before.sent ==
                2 * (2 * (size - 1) * N * sizeof *x / size));
    assert_true(bm_comm_traffic(comm).shared == before.shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_work_runs_in_order_beside_the_caller, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_wait_returns_while_later_work_is_running, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_the_first_failure_is_reported_once_and_the_rest_runs, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(test_a_failure_on_one_rank_reaches_all,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_closing_runs_the_work_that_was_put,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_an_mpi_library_for_one_thread_is_rejected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_an_ordered_sum_runs_on_the_comm_thread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_bytes_of_the_comm_thread_count_for_the_caller, set_up,
            tear_down),
    };
    return RUN_GROUP_MPI("thread", tests);
}
