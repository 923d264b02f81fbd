/*
 * Traffic and staleness between workers and a parameter server, on the virtual
 * clock and in real time; and that blocks in real time end in any order of
 * messages and after failures.
 */
#include "tests/support/equations.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>

/* ---- counters ------------------------------------------------------------ */

static int64_t ceiling(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* A task whose gradients are 0: traffic does not depend on them. */
typedef struct zero_task {
    int64_t steps; /* of worker 0; each of the next has one more */
} zero_task;

static bm_status begin_zero_task(void *self, bm_position at, int64_t *steps)
{
    const zero_task *s = self;

    *steps = at.block == 0 ? s->steps + 100 : 0;
    return BM_OK;
}

static bm_status zero_gradient(void *self, bm_params *params, int worker,
                               int64_t step, double *samples)
{
    (void)self;
    (void)worker;
    (void)step;
    memset(params->g, 0, params->n * sizeof *params->g);
    *samples = 1;
    return BM_OK;
}

static bm_status equal_score(void *self, int worker, bm_score *out)
{
    (void)self;
    (void)worker;
    *out = (bm_score){.loss = 1, .chance = 1, .sequences = 1};
    return BM_OK;
}

static int64_t count_zero_steps(void *self, int worker)
{
    return ((zero_task *)self)->steps + worker;
}

/* M bytes for each push and for each fetch, of `workers` workers with n
 * weights; easgd pushes and fetches once in every period. */
static void check_bytes(bm_comm *comm, int workers, size_t n,
                        const char *strategy, int64_t push, int64_t fetch)
{
    char text[4][40];
    const char *const settings[] = {text[0], text[1], text[2], text[3], NULL};
    problem p = {.workers = workers, .batch = 1};
    zero_task s = {.steps = 3};
    bm_task task = {&s,
                    begin_zero_task,
                    zero_gradient,
                    equal_score,
                    count_zero_steps,
                    epoch_size,
                    NULL,
                    NULL};
    bm_block_report report;
    double pushed = 0, pulled = 0, m = (double)(n * sizeof(float));
    job j;

    snprintf(text[0], sizeof text[0], "train.strategy=%s", strategy);
    snprintf(text[1], sizeof text[1], "asgd.push_every=%d", (int)push);
    snprintf(text[2], sizeof text[2], "asgd.fetch_every=%d", (int)fetch);
    snprintf(text[3], sizeof text[3], "easgd.period=%d", (int)push);
    j = open_job(comm, p, settings);
    j.params.n = j.params.n_learned = n;
    assert_ok(bm_trainer_open(&j.trainer, j.config, comm, &j.params, &task));
    assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
    for (int k = 0; k < workers; k++) {
        pushed += m * (double)ceiling(s.steps + k, push);
        pulled += m * (double)ceiling(s.steps + k, fetch);
    }
    assert_true(report.service->pushed == pushed);
    assert_true(report.service->pulled == pulled);
    assert_true(report.service->pushes * m == pushed);
    close_job(&j);
}

/* On one rank: counters do not depend on the number of ranks. */
static void test_bytes_follow_from_the_periods(void **state)
{
    static const size_t sizes[] = {1, 3, 1023, 1025, 2499};
    bm_comm *one = NULL;

    (void)state;
    assert_ok(bm_comm_open_alone(&one));
    for (int workers = 1; workers <= 17; workers++)
        FOR_EACH (i, sizes) {
            check_bytes(one, workers, sizes[i], "asgd", 1, 1);
            check_bytes(one, workers, sizes[i], "asgd", 2, 4);
            check_bytes(one, workers, sizes[i], "easgd", 3, 3);
        }
    bm_comm_close(one);
}

/* At equal speeds each other worker pushes once between two pushes of one. */
static void test_staleness_is_n_minus_1_at_equal_speeds(void **state)
{
    static const char *const settings[] = {"train.strategy=asgd",
                                           "clock.spread=0", "sgd.momentum=0",
                                           "train.diverged=0", NULL};
    enum { STEPS = 6 };
    bm_block_report report;
    job j = open_job(*state, even, settings);

    start_job(&j);
    assert_ok(bm_trainer_block(j.trainer, 0.01, &report));
    for (int tau = 0; tau < (int)report.service->n_stale; tau++)
        assert_true(report.service->stale[tau] ==
                    (tau < WORKERS - 1    ? 1
                     : tau == WORKERS - 1 ? 1 + WORKERS * (STEPS - 1)
                                          : 0));
    assert_true(report.service->most == WORKERS - 1);
    assert_true(report.service->seconds == STEPS);
    close_job(&j);
}

/* A worker that is 100 times slower: the staleness of its pushes is maximal,
 * and the block ends with its last push. */
static void test_a_block_waits_for_a_slow_worker(void **state)
{
    static const char *const settings[] = {
        "train.strategy=asgd", "asgd.scaling=inverse",    "sgd.momentum=0",
        "clock.spread=0",      "clock.times=1 1 1 1 100", NULL};
    enum { STEPS = 6 };
    bm_block_report report;
    job j = open_job(*state, even, settings);

    start_job(&j);
    assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
    assert_true(report.service->most == (WORKERS - 1) * STEPS);
    assert_true(report.service->seconds == 100 * STEPS);
    close_job(&j);
}

/* ---- real time ----------------------------------------------------------- */

static const char *const realtime_settings[][5] = {
    {"train.strategy=asgd", "asgd.scaling=inverse", NULL},
    {"train.strategy=asgd", "asgd.update=local", "asgd.push_every=2",
     "asgd.fetch_every=4", NULL},
    {"train.strategy=softsync", NULL},
    {"train.strategy=softsync", "softsync.n=2", NULL},
    {"train.strategy=easgd", "easgd.period=2", NULL},
};

static job open_real(bm_comm *comm, problem p, const char *const *way)
{
    const char *settings[8] = {"clock.kind=real", "sgd.momentum=0.25", STEADY};

    p.workers = bm_comm_size(comm);
    for (int i = 0; way[i] != NULL; i++)
        settings[3 + i] = way[i];
    return open_job(comm, p, settings);
}

static void test_training_in_real_time_converges(void **state)
{
    int ranks = bm_comm_size(*state);
    problem p = {.batch = BATCH, .unknowns = 5, .steps = 24 / ranks};

    FOR_EACH (k, realtime_settings) {
        static result r;
        job j = open_real(*state, p, realtime_settings[k]);

        start_job(&j);
        run_blocks(&j, 0, EPOCHS * BLOCKS, &r);
        assert_true(r.score[0].count == 24 * BATCH);
        assert_true(r.score[5].loss < 0.05 * r.score[0].loss);
        for (size_t i = 0; i < N; i += N / 5)
            assert_true(near(r.model[i], truth(i), 0.1));
        close_job(&j);
    }
}

/* The histogram and the numbers derived from it; returns the pushes. */
static double check_staleness(const bm_service *s)
{
    double pushes = 0, sum = 0, most = 0;

    for (size_t tau = 0; tau < s->n_stale; tau++) {
        pushes += s->stale[tau];
        sum += s->stale[tau] * (double)tau;
        most = s->stale[tau] > 0 ? (double)tau : most;
    }
    assert_true(most + 1 < (double)s->n_stale); /* the last bin is open */
    assert_true(s->most == most);
    assert_true(near(s->mean, sum / pushes, 1e-12));
    return pushes;
}

/* With asgd the last of the workers' first pushes comes after the first pushes
 * of all others: staleness P - 1. With a group of all workers, or one worker,
 * it is 0. */
static void test_counters_in_real_time_add_up(void **state)
{
    int ranks = bm_comm_size(*state);
    double m = N * sizeof(float);

    FOR_EACH (k, realtime_settings) {
        bm_block_report report;
        job j = open_real(*state, even, realtime_settings[k]);
        double pushes = 0;

        start_job(&j);
        assert_ok(bm_trainer_block(j.trainer, 0.1, &report));
        pushes = check_staleness(report.service);
        assert_true(pushes == report.service->pushes);
        assert_true(k != 0 || report.service->most >= ranks - 1);
        assert_true((k != 2 && ranks > 1) || report.service->most == 0);
        assert_true(pushes == ranks * (k == 1 || k == 4 ? 3 : 6));
        assert_true(report.service->pushed == m * pushes);
        assert_true(report.service->pulled == m * ranks *
                                                  (k == 1   ? 2
                                                   : k == 4 ? 3
                                                            : 6));
        close_job(&j);
    }
}

/* The order of messages does not matter to one update of all pushes. */
static void test_softsync_of_all_in_real_time_equals_ssgd(void **state)
{
    static const char *const soft[] = {"train.strategy=softsync", NULL};
    static const char *const ssgd[] = {"train.strategy=ssgd",
                                       "sgd.momentum=0.25", STEADY, NULL};
    static result got, expected;
    problem p = even;
    job j = open_real(*state, p, soft);

    start_job(&j);
    memset(&got, 0, sizeof got);
    run_blocks(&j, 0, EPOCHS * BLOCKS, &got);
    close_job(&j);
    p.workers = bm_comm_size(*state);
    run_job(*state, p, ssgd, &expected);
    for (int i = 0; i < N; i++)
        assert_true(near(got.model[i], expected.model[i], 1e-6));
    if (p.workers == 1)
        assert_memory_equal(got.model, expected.model, sizeof got.model);
}

/* Fails in the middle of the last worker's share. */
static bm_status fail_on_the_last(void *self, bm_params *params, int worker,
                                  int64_t step, double *samples)
{
    const problem *p = self;

    if (worker == p->workers - 1 && step == 1)
        return BM_FAIL(BM_ERR_IO, "the disk is gone");
    return gradient(self, params, worker, step, samples);
}

/* With shares of different lengths, empty ones too, and with a rank that
 * fails. */
static void test_blocks_in_real_time_always_end(void **state)
{
    FOR_EACH (k, realtime_settings) {
        static result r;
        bm_block_report report;
        job j = open_real(*state, ragged, realtime_settings[k]);
        bm_task task = {&j.problem, move,        fail_on_the_last,
                        read_score, count_steps, epoch_size,
                        NULL,       NULL};

        if (bm_comm_size(*state) > 1) { /* else a block would be empty */
            start_job(&j);
            run_blocks(&j, 0, EPOCHS * BLOCKS, &r);
            bm_trainer_close(j.trainer);
            j.trainer = NULL;
        }
        j.problem.ragged = false;
        assert_ok(
            bm_trainer_open(&j.trainer, j.config, j.comm, &j.params, &task));
        assert_int_equal(bm_trainer_block(j.trainer, 0.25, &report), BM_ERR_IO);
        assert_non_null(strstr(bm_last_error(), "the disk is gone"));
        close_job(&j);
    }
}

static void test_real_time_needs_a_rank_for_each_worker(void **state)
{
    static const char *const settings[] = {"train.strategy=asgd",
                                           "clock.kind=real", NULL};
    problem p = {.workers = bm_comm_size(*state) + 1, .batch = BATCH};
    job j = open_job(*state, p, settings);
    bm_task task = {&j.problem,  move,       gradient, read_score,
                    count_steps, epoch_size, NULL,     NULL};

    assert_int_equal(
        bm_trainer_open(&j.trainer, j.config, j.comm, &j.params, &task),
        BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "needs a rank for each worker"));
    close_job(&j);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_bytes_follow_from_the_periods),
        TEST(test_staleness_is_n_minus_1_at_equal_speeds),
        TEST(test_a_block_waits_for_a_slow_worker),
        TEST(test_training_in_real_time_converges),
        TEST(test_counters_in_real_time_add_up),
        TEST(test_softsync_of_all_in_real_time_equals_ssgd),
        TEST(test_blocks_in_real_time_always_end),
        TEST(test_real_time_needs_a_rank_for_each_worker),
    };
    return RUN_GROUP_MPI("server", tests);
}
