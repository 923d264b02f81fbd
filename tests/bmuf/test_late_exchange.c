/*
 * Exchanges that run while workers train: a late exchange ([block] overlap)
 * ends before the next block does, and sends as many bytes as one that is
 * waited for; so do buckets ([ssgd] overlap).
 */
#include "core/trace/span.h"
#include "tests/support/reference/equations.h"
#include "tests/support/spans.h"
#include "tests/support/support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { ALL = EPOCHS * BLOCKS, STEPS = 6 };

#define LATE "block.overlap=yes"

/* ---- order --------------------------------------------------------------- */

/* What the watcher of spans has seen of the comm thread. */
static struct {
    pthread_t computing;
    atomic_int exchanges; /* that have ended */
    atomic_bool slow;     /* they take longer */
} seen;

static void begin(const char *name)
{
    static const struct timespec late = {0, 800000000};

    if (strcmp(name, "exchange") == 0 && atomic_load(&seen.slow) &&
        !pthread_equal(pthread_self(), seen.computing))
        nanosleep(&late, NULL);
}

static void end(const char *name, double began, double ended)
{
    (void)began;
    (void)ended;
    if (strcmp(name, "exchange") == 0 &&
        !pthread_equal(pthread_self(), seen.computing))
        atomic_fetch_add(&seen.exchanges, 1);
}

static const bm_span_watcher watcher = {begin, end};

/* The block's first gradient waits until the exchange after the block before
 * has ended: that exchange cannot wait for this block. */
static bm_status gradient_after_exchange(void *self, bm_params *params,
                                         int worker, int64_t step,
                                         double *samples)
{
    const problem *p = self;
    int before = (int)(p->at.epoch * BLOCKS + p->at.block);

    while (step == 0 && atomic_load(&seen.exchanges) < before)
        sched_yield(); /* or the test times out */
    return gradient(self, params, worker, step, samples);
}

static void test_late_exchange_runs_during_the_next_block(void **state)
{
    static const char *const ways[][4] = {
        {"train.strategy=bmuf", LATE, NULL},
        {"train.strategy=average", LATE, "block.fragments=2", NULL}};

    seen.computing = pthread_self();
    bm_span_watch(&watcher);
    FOR_EACH (k, ways) {
        job j = open_job(*state, even, ways[k]);
        bm_task task = {&j.problem, move,        gradient_after_exchange,
                        read_score, count_steps, epoch_size,
                        NULL,       NULL};

        atomic_store(&seen.exchanges, 0);
        assert_ok(
            bm_trainer_open(&j.trainer, j.config, j.comm, &j.params, &task));
        for (int t = 0; t < ALL; t++) {
            bm_block_report report;
            assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
        }
        close_job(&j); /* waits for the last one */
        assert_int_equal(atomic_load(&seen.exchanges), ALL);
    }
}

/* As before an evaluation. */
static void test_a_rank_that_waits_for_one_does_not_look_stuck(void **state)
{
    static const char *const settings[] = {"train.strategy=bmuf", LATE, NULL};
    job j = open_job(*state, even, settings);
    bm_block_report report;
    double since = 0;

    seen.computing = pthread_self();
    bm_span_watch(&watcher);
    start_job(&j);
    atomic_store(&seen.slow, true);
    assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
    since = bm_clock();
    spans_begin();
    assert_ok(bm_trainer_global(j.trainer, j.params.w));
    assert_true(spans_end() < 0.6);
    assert_true(bm_clock() - since > 0.6);
    atomic_store(&seen.slow, false);
    close_job(&j);
}

/* ---- bytes --------------------------------------------------------------- */

static double bytes_sent(const bm_comm *comm)
{
    bm_traffic t = bm_comm_traffic(comm);
    return (double)t.sent + (double)t.shared;
}

/* With a worker on each rank all ranks together send 8 (P - 1) bytes for each
 * number, in any pieces. */
static void check_bytes(bm_comm *comm, const char *const *settings,
                        double exchanges)
{
    problem p = {.workers = bm_comm_size(comm), .batch = BATCH};
    job j = open_job(comm, p, settings);
    double before = 0, total = 0;

    start_job(&j); /* may time some exchanges */
    before = bytes_sent(comm);
    for (int t = 0; t < ALL; t++) {
        bm_block_report report;
        assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
    }
    bm_trainer_close(j.trainer);
    j.trainer = NULL;
    total = bytes_sent(comm) - before;
    assert_ok(bm_comm_sum(comm, &total, 1));
    assert_true(total == exchanges * 8 * (bm_comm_size(comm) - 1) * N);
    close_job(&j);
}

static void test_late_exchanges_send_as_many_bytes(void **state)
{
    static const char *const waits[] = {"train.strategy=bmuf", STEADY, NULL};
    static const char *const late[] = {"train.strategy=bmuf", LATE, STEADY,
                                       NULL};

    check_bytes(*state, waits, ALL);
    check_bytes(*state, late, ALL);
}

static void test_buckets_send_as_many_bytes(void **state)
{
    static const char *const overlaps[] = {
        "ssgd.overlap=none", "ssgd.overlap=layer", "ssgd.overlap=bucket",
        "ssgd.overlap=merged"};

    FOR_EACH (k, overlaps) {
        const char *const settings[] = {"train.strategy=ssgd", overlaps[k],
                                        "ssgd.bucket=0.004", STEADY, NULL};

        check_bytes(*state, settings, ALL * STEPS);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_late_exchanges_send_as_many_bytes),
        TEST(test_buckets_send_as_many_bytes),
        TEST(test_late_exchange_runs_during_the_next_block),
        TEST(test_a_rank_that_waits_for_one_does_not_look_stuck),
    };
    return RUN_GROUP_MPI("late_exchange", tests);
}
