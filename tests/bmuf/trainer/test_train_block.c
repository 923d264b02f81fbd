/* Blocks that end by the clock, which is a function of the steps made: how many
 * steps each worker makes, against the rule by hand and step by step, and the
 * model, against the whole algorithm in double. */
#include "tests/support/reference/equations.h"
#include "tests/support/reference/halts.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ALL = EPOCHS * BLOCKS };

/* Of this rank: seconds so far, and the duration of a worker's step. */
typedef struct timer {
    double now;
    double cost[WORKERS];
} timer;

static timer of_rank;

static const timer uneven = {.cost = {0.25, 1, 0.5, 2, 0.75}};

/* bm_clock in the library reads this. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    double whole = floor(of_rank.now);

    (void)clock;
    out->tv_sec = (time_t)whole;
    out->tv_nsec = (long)(1e9 * (of_rank.now - whole));
    return 0;
}

static bm_status slow_gradient(void *self, bm_params *params, int worker,
                               int64_t step, double *samples)
{
    BM_TRY(gradient(self, params, worker, step, samples));
    of_rank.now += *samples > 0 ? of_rank.cost[worker] : 0;
    return BM_OK;
}

/* Opens the trainer; j may not move any more. */
static void start_timed(job *j, timer t)
{
    bm_task task = {&j->problem, move,       slow_gradient, read_score,
                    count_steps, epoch_size, NULL,          NULL};

    of_rank = t;
    assert_ok(
        bm_trainer_open(&j->trainer, j->config, j->comm, &j->params, &task));
}

static int64_t steps_in(const problem *p, bm_position at, int worker)
{
    return (share(p, at, worker) + p->batch - 1) / p->batch;
}

/* Workers without a share get no time. */
static int shares_in(const problem *p, bm_position at, int worker, int last)
{
    int n = 0;

    for (int k = worker; k < last; k++)
        n += steps_in(p, at, k) > 0;
    return n;
}

/* The steps of all workers in a block that begins at t[rank].now. */
static void expect_steps(bm_comm *comm, const problem *p, bm_position at,
                         double seconds, timer *t, int64_t *steps)
{
    for (int r = 0; r < bm_comm_size(comm); r++) {
        int last = bm_comm_first(comm, p->workers, r + 1);
        double end = t[r].now + seconds;

        for (int k = bm_comm_first(comm, p->workers, r); k < last; k++) {
            int left = shares_in(p, at, k, last);
            double until = t[r].now + (end - t[r].now) / fmax(left, 1);

            steps[k] = 0;
            while (steps[k] < steps_in(p, at, k) &&
                   (steps[k] == 0 || t[r].now < until)) {
                t[r].now += t[r].cost[k];
                steps[k]++;
            }
        }
    }
}

/* A share's first steps; returns the samples seen. */
static double learn_some(const problem *p, bm_position at, int worker,
                         int64_t steps, double *w)
{
    static double g[N], v[N];
    double seen = 0;

    memset(v, 0, sizeof v);
    for (int64_t step = 0; step < steps; step++) {
        seen += gradient_of(p, at, worker, step, w, g);
        for (int i = 0; i < N; i++) {
            v[i] = 0.5 * v[i] - 0.25 * g[i];
            w[i] += v[i];
        }
    }
    return seen;
}

static void test_timed_blocks_follow_their_equations_in_double(void **state)
{
    static const char *const settings[] = {
        "train.strategy=bmuf", "block.seconds=4",  STEADY,
        "bmuf.momentum=0.75",  "sgd.momentum=0.5", NULL};
    static double start_[N], model[N], delta[N], w[N], mean[N];
    static result got;
    bm_comm *comm = *state;
    timer t[4] = {uneven, uneven, uneven, uneven};
    int64_t steps[WORKERS] = {0}, left = 0;
    job j = open_job(comm, ragged, settings);

    start_timed(&j, uneven);
    memset(start_, 0, sizeof start_);
    memset(model, 0, sizeof model);
    memset(delta, 0, sizeof delta);
    memset(&got, 0, sizeof got);
    for (int b = 0; b < ALL; b++) {
        bm_position at = position_of(b);
        double total = 0;

        expect_steps(comm, &ragged, at, 4, t, steps);
        run_blocks(&j, b, b + 1, &got);
        memset(mean, 0, sizeof mean);
        for (int k = 0; k < WORKERS; k++) {
            double n = 0;

            assert_int_equal(bm_trainer_batches(j.trainer, k), steps[k]);
            left += steps_in(&ragged, at, k) - steps[k];
            memcpy(w, start_, sizeof w);
            n = learn_some(&ragged, at, k, steps[k], w);
            for (int i = 0; i < N; i++)
                mean[i] += n * (w[i] - start_[i]);
            total += n;
        }
        assert_true(got.score[b].count == total);
        for (int i = 0; i < N; i++) {
            delta[i] = 0.75 * delta[i] + mean[i] / total;
            model[i] += delta[i];
            start_[i] = model[i] + 0.75 * delta[i];
        }
        for (int i = 0; i < N; i++)
            assert_true(near(got.model[i], model[i], 1e-6));
    }
    assert_true(left > 0);
    close_job(&j);
}

/* Two workers of one rank, with six steps each. */
static void check_by_hand(const char *seconds, double first, double second,
                          int64_t of_first, int64_t of_second)
{
    const problem p = {.workers = 2, .batch = BATCH};
    const char *const settings[] = {"train.strategy=average", seconds, NULL};
    bm_block_report report;
    bm_comm *one = NULL;
    job j;

    assert_ok(bm_comm_open_alone(&one));
    j = open_job(one, p, settings);
    start_timed(&j, (timer){.cost = {first, second}});
    assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
    assert_int_equal(bm_trainer_batches(j.trainer, 0), of_first);
    assert_int_equal(bm_trainer_batches(j.trainer, 1), of_second);
    assert_true(report.samples == (double)(BATCH * (of_first + of_second)));
    close_job(&j);
    bm_comm_close(one);
}

static void test_time_is_divided_evenly(void **state)
{
    (void)state;
    check_by_hand("block.seconds=0", 9, 9, 6, 6);      /* no limit */
    check_by_hand("block.seconds=4", 1, 0.5, 2, 4);    /* two seconds each */
    check_by_hand("block.seconds=4", 0.25, 0.5, 6, 5); /* 1.5, then 2.5 left */
    check_by_hand("block.seconds=4", 3, 0.25, 1, 4);   /* 3, then 1 left */
    check_by_hand("block.seconds=4", 7, 0.25, 1, 1); /* one step in any case */
}

/* A block that ends before its time is up is like any other. */
static void test_enough_time_changes_no_bits(void **state)
{
    static const char *const plain[] = {"train.strategy=bmuf", NULL};
    static const char *const timed[] = {"train.strategy=bmuf",
                                        "block.seconds=1000", NULL};
    static result got, expected;
    job j = open_job(*state, ragged, timed);

    run_job(*state, ragged, plain, &expected);
    memset(&got, 0, sizeof got);
    start_timed(&j, uneven);
    run_blocks(&j, 0, ALL, &got);
    close_job(&j);
    assert_memory_equal(&got, &expected, sizeof got);
}

/* What a block skipped is not carried over. */
static void test_halts_change_no_bits(void **state)
{
    static const char *const settings[] = {"train.strategy=bmuf",
                                           "block.seconds=2", STEADY,
                                           "sgd.local_state=keep", NULL};
    static result straight, resumed;
    halt h = {0};
    timer t = uneven;
    job j = open_job(*state, ragged, settings);

    memset(&straight, 0, sizeof straight);
    memset(&resumed, 0, sizeof resumed);
    start_timed(&j, uneven);
    run_blocks(&j, 0, ALL, &straight);
    close_job(&j);
    for (int b = 0; b < ALL; b++) {
        j = open_job(*state, ragged, settings);
        start_timed(&j, t);
        if (b > 0)
            restore_job(&j, &h);
        run_blocks(&j, b, b + 1, &resumed);
        save_job(&j, b + 1, &h);
        t = of_rank;
        close_job(&j);
    }
    assert_memory_equal(&resumed, &straight, sizeof straight);
    free_halt(&h);
}

/* Whether time runs out before or after the worker goes wrong. */
static void test_diverged_worker_is_left_out(void **state)
{
    static const char *const settings[] = {
        "train.strategy=bmuf", "block.seconds=1", "train.diverged=1000", NULL};
    static result got;
    problem p = even;
    job j;

    p.poisoned = 1 + 1;
    p.poison = p.excess = 1e6;
    j = open_job(*state, p, settings);
    start_timed(&j, uneven);
    memset(&got, 0, sizeof got);
    run_blocks(&j, 0, ALL, &got);
    assert_int_equal(got.left_out, 1);
    close_job(&j);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_timed_blocks_follow_their_equations_in_double),
        TEST(test_time_is_divided_evenly),
        TEST(test_enough_time_changes_no_bits),
        TEST(test_halts_change_no_bits),
        TEST(test_diverged_worker_is_left_out),
    };
    return RUN_GROUP_MPI("train_block", tests);
}
