/*
 * Traffic and staleness between workers and a parameter server, on the virtual
 * clock and in real time; and that blocks in real time end in any order of
 * messages and after failures.
 */
#include "bmuf/async/server.h"
#include "bmuf/async/server_shards.h"
#include "core/finite.h"
#include "tests/support/reference/halts.h"
#include "tests/support/spans.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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

static bm_status equal_score(void *self, int worker, bm_score *out,
                             double *batches)
{
    (void)self;
    (void)worker;
    *out = (bm_score){.loss = 1, .chance = 1, .sequences = 1};
    *batches = 0;
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

/* Of the server, in these settings: one on each rank, but for one group of
 * several pushes. */
static int shards_of(int k, int ranks)
{
    return (k == 2 && ranks > 1) || (k == 3 && ranks > 3) ? 1 : ranks;
}

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

/* The histogram and the numbers derived from it; returns the pushes, each
 * counted in each shard. */
static double check_staleness(const bm_service *s)
{
    double pushes = 0, sum = 0, most = 0, of_shards = 0;

    for (size_t tau = 0; tau < s->n_stale; tau++) {
        pushes += s->stale[tau];
        sum += s->stale[tau] * (double)tau;
        most = s->stale[tau] > 0 ? (double)tau : most;
    }
    assert_true(most + 1 < (double)s->n_stale); /* the last bin is open */
    assert_true(s->most == most);
    assert_true(near(s->mean, sum / pushes, 1e-12));
    for (int k = 0; k < s->shards; k++)
        of_shards += s->shard_mean[k] / s->shards;
    assert_true(near(s->mean, of_shards, 1e-12));
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
        assert_int_equal(report.service->shards, shards_of((int)k, ranks));
        pushes = check_staleness(report.service) / report.service->shards;
        assert_true(pushes == report.service->pushes);
        assert_true(k != 0 || pushes == report.service->updates);
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

/* The last worker is slow with a step. */
static bm_status slow_on_the_last(void *self, bm_params *params, int worker,
                                  int64_t step, double *samples)
{
    static const struct timespec late = {0, 800000000};
    const problem *p = self;

    if (worker == p->workers - 1 && step == 1)
        nanosleep(&late, NULL);
    return gradient(self, params, worker, step, samples);
}

/* The first worker is done early. */
static int64_t count_fewer_steps(void *self, int worker)
{
    const problem *p = self;

    return worker == 0 && p->workers > 1 ? 1 : count_steps(self, worker);
}

/* A rank whose share is over, or that waits for a group or for a server. */
static void test_ranks_that_wait_in_real_time_do_not_look_stuck(void **state)
{
    static const char *const ways[][3] = {
        {"train.strategy=asgd", NULL},
        {"train.strategy=asgd", "clock.shards=1", NULL},
        {"train.strategy=softsync", NULL}};
    bm_comm *comm = *state;
    bool last = bm_comm_rank(comm) == bm_comm_size(comm) - 1;

    FOR_EACH (k, ways) {
        bm_block_report report;
        job j = open_real(comm, even, ways[k]);
        bm_task task = {&j.problem,
                        move,
                        slow_on_the_last,
                        read_score,
                        count_fewer_steps,
                        epoch_size,
                        NULL,
                        NULL};
        double longest = 0;

        assert_ok(
            bm_trainer_open(&j.trainer, j.config, j.comm, &j.params, &task));
        assert_ok(bm_comm_barrier(comm));
        spans_begin();
        assert_ok(bm_trainer_block(j.trainer, 0.1, &report));
        longest = spans_end();
        assert_true(last ? longest >= 0.8 : longest < 0.6);
        close_job(&j);
    }
}

/* ---- shards -------------------------------------------------------------- */

static void check_cut(size_t n, int shards, int ranks)
{
    bm_server_shards s = {0};
    double most = 0;
    int found = 0;

    assert_ok(bm_server_shards_cut(&s, n, shards, ranks));
    assert_true(s.begin[0] == 0 && s.begin[shards] == n);
    for (int k = 0; k < shards; k++) {
        assert_true(s.begin[k] <= s.begin[k + 1]);
        assert_int_equal(bm_server_shards_at(&s, bm_server_shards_rank(&s, k)),
                         k);
    }
    for (int r = 0; r < ranks; r++) {
        int k = bm_server_shards_at(&s, r);
        double own = k < 0 ? 0 : (double)(s.begin[k + 1] - s.begin[k]);

        found += k >= 0;
        most = fmax(most, 3 * ((double)n - own) + (ranks - 1) * own);
    }
    assert_int_equal(found, shards);
    assert_true(bm_server_shards_busiest(&s, 3) == most);
    bm_server_shards_free(&s);
}

static void test_shards_cover_the_vector(void **state)
{
    static const size_t sizes[] = {1, 1023, 1024, 1025, 2500, 123457};

    (void)state;
    FOR_EACH (i, sizes)
        for (int ranks = 1; ranks <= 9; ranks++)
            for (int shards = 1; shards <= ranks; shards++)
                check_cut(sizes[i], shards, ranks);
}

/* Only one worker has data, another one in each block. */
static int64_t count_steps_of_one(void *self, int worker)
{
    const problem *p = self;

    return worker == p->at.block % p->workers ? 5 : 0;
}

static bm_status gradient_of_one(void *self, bm_params *params, int worker,
                                 int64_t step, double *samples)
{
    *samples = 0;
    return step < count_steps_of_one(self, worker)
               ? gradient(self, params, worker, step, samples)
               : BM_OK;
}

static void start_turns(job *j, bm_comm *comm, const char *const *settings)
{
    problem p = {.workers = bm_comm_size(comm), .batch = BATCH};
    bm_task task = {&j->problem,
                    move,
                    gradient_of_one,
                    read_score,
                    count_steps_of_one,
                    epoch_size,
                    NULL,
                    NULL};

    *j = open_job(comm, p, settings);
    assert_ok(
        bm_trainer_open(&j->trainer, j->config, j->comm, &j->params, &task));
}

/* A run in which no two workers push in the same block; with `halts` it is stopped
 * and resumed after each. */
static void run_in_turns(bm_comm *comm, const char *const *way,
                         const char *more, bool halts, float *model)
{
    const char *settings[10] = {more, STEADY};
    halt h = {0};
    job j;

    for (int i = 0; way[i] != NULL; i++)
        settings[2 + i] = way[i];
    start_turns(&j, comm, settings);
    for (int t = 0; t < 2; t++) {
        bm_block_report report;

        assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
        if (!halts)
            continue;
        save_job(&j, t + 1, &h);
        close_job(&j);
        start_turns(&j, comm, settings);
        restore_job(&j, &h);
    }
    assert_ok(bm_trainer_global(j.trainer, model));
    free_halt(&h);
    close_job(&j);
}

/* In shards, also stopped and resumed, with one server, and on the virtual
 * clock; with clipping as near as rounding allows. */
static void test_shards_are_one_server_where_workers_take_turns(void **state)
{
    static const char *const ways[][5] = {
        {"train.strategy=asgd", "sgd.momentum=0.5", "sgd.nesterov=yes",
         "sgd.weight_decay=0.01", NULL},
        {"train.strategy=asgd", "sgd.update=adamw", "sgd.epsilon=1", NULL},
        {"train.strategy=asgd", "asgd.update=local", "asgd.push_every=2",
         "asgd.fetch_every=4", NULL},
        {"train.strategy=easgd", "easgd.period=2", "easgd.alpha=0.5", NULL},
        {"train.strategy=asgd", "sgd.momentum=0.5", "sgd.clip=0.02", NULL}};
    static float in_shards[N], whole[N], halted[N], virtual[N];

    FOR_EACH (k, ways) {
        run_in_turns(*state, ways[k], "clock.kind=real", false, in_shards);
        run_in_turns(*state, ways[k], "clock.kind=real", true, halted);
        assert_memory_equal(halted, in_shards, sizeof halted);
        run_in_turns(*state, ways[k], "clock.kind=virtual", false, virtual);
        for (int i = 0; i < N; i++)
            assert_true(near(in_shards[i], virtual[i], 1e-6));
        memcpy(whole, in_shards, sizeof whole);
        if (bm_comm_size(*state) > 1) {
            const char *one[6] = {"clock.kind=real"};

            for (int i = 0; ways[k][i] != NULL; i++)
                one[1 + i] = ways[k][i];
            run_in_turns(*state, one, "clock.shards=1", false, whole);
        }
        for (int i = 0; i < N; i++)
            assert_true(near(in_shards[i], whole[i], 1e-6));
        if (strcmp(ways[k][2], "sgd.clip=0.02") != 0)
            assert_memory_equal(in_shards, whole, sizeof whole);
    }
}

/* A push to a server of this rank's own, and what it answers. */
static double push_to(bm_comm *comm, const float *x, size_t n, double known,
                      double norm)
{
    bm_message m = {.word = {[BM_KIND] = BM_PUSH,
                             [BM_SAMPLES] = 1,
                             [BM_KNOWN] = known,
                             [BM_NORM] = norm}};
    int self = bm_comm_rank(comm);

    assert_ok(bm_comm_send_message(comm, self, BM_TO_SERVER, &m, x, n));
    assert_ok(bm_comm_receive_message(comm, BM_TO_WORKER, &m));
    return m.word[BM_VERSION];
}

/* A shard counts the versions that a push has missed, divides by that, clips by
 * the norm of the whole vector, and leaves statistics unclipped. */
static void test_a_shard_scales_stale_pushes(void **state)
{
    enum { FROM = 1024, COUNT = 8, LEARNED = 6, BINS = 9 };
    static const double known[] = {0, 0, 1, 0}, norm[] = {1, 1, 8, 40};
    static const double tau[] = {0, 1, 1, 3};
    static const char *const settings[] = {"sgd.momentum=0", "sgd.clip=4",
                                           "clock.kind=real", NULL};
    const bm_server_policy policy = {.push = BM_GRADIENT,
                                     .group = 1,
                                     .push_every = 1,
                                     .fetch_every = 1,
                                     .scaled = true};
    const bm_layer_rate slow = {FROM - 1, 2, 0.5};
    bm_message done = {.word = {[BM_KIND] = BM_DONE}};
    float x[COUNT];
    double w[COUNT] = {0}, stale[BINS];
    bm_service service;
    bm_server *s = NULL;
    bm_comm *twin = NULL;
    job j = open_job(*state, even, settings);

    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i + 1);
    j.params.n_learned = FROM + LEARNED;
    j.params.layer_rates = &slow;
    j.params.n_layer_rates = 1;
    assert_ok(bm_comm_twin(&twin, *state));
    assert_ok(
        bm_server_open(&s, j.config, twin, &j.params, FROM, COUNT, &policy, 1));
    memset(bm_server_params(s)->w, 0, sizeof x);
    assert_ok(bm_server_start(s, 0.125F, stale, BINS));
    bm_server_cancel(s); /* ends it, as another rank could not start its own */
    assert_ok(bm_server_start(s, 0.125F, stale, BINS));
    FOR_EACH (k, known) {
        double a = 1 / fmax(tau[k], 1);
        double b = a * fmin(1, 4 / (a * norm[k]));

        assert_true(push_to(twin, x, COUNT, known[k], norm[k]) ==
                    (double)k + 1);
        for (int i = 0; i < COUNT; i++)
            w[i] -=
                i < LEARNED ? 0.125 * b * (i == 0 ? 0.5 : 1) * x[i] : a * x[i];
    }
    assert_ok(bm_comm_send_message(twin, bm_comm_rank(twin), BM_TO_SERVER,
                                   &done, NULL, 0));
    assert_ok(bm_server_join(s, &service));
    for (int i = 0; i < COUNT; i++)
        assert_true(near(bm_server_params(s)->w[i], w[i], 1e-6));
    for (int t = 0; t < BINS; t++)
        assert_true(stale[t] == (t == 1 ? 2 : t == 0 || t == 3));
    assert_true(service.most == 3 && service.updates == 4);
    bm_server_close(s);
    bm_comm_close(twin);
    close_job(&j);
}

/* Each rank sends what it pushes to other ranks' shards, answers from its own,
 * and at the end its slices of W and of the momentum. */
static void test_the_busiest_rank_sends_less_with_shards(void **state)
{
    static const char *const ways[][3] = {
        {"train.strategy=asgd", "clock.shards=1", NULL},
        {"train.strategy=asgd", "clock.shards=0", NULL}};
    int ranks = bm_comm_size(*state), others = ranks - 1;

    FOR_EACH (k, ways) {
        bm_server_shards shards;
        bm_block_report report;
        job j = open_real(*state, even, ways[k]);
        uint64_t before = 0;
        double own = 0;

        assert_ok(bm_server_shards_cut(&shards, N, k == 0 ? 1 : ranks, ranks));
        own = (double)bm_server_shards_size(
            &shards, bm_server_shards_at(&shards, bm_comm_rank(*state)));
        bm_server_shards_free(&shards);
        start_job(&j);
        before = bm_comm_traffic(*state).sent;
        assert_ok(bm_trainer_block(j.trainer, 0.1, &report));
        assert_true((double)(bm_comm_traffic(*state).sent - before) ==
                    4 * (6 * (N - own) + (5 + 2) * others * own));
        close_job(&j);
    }
}

/* The pushes of one block, which no shard makes an update of. */
static void test_a_worker_that_pushes_nan_is_left_out(void **state)
{
    static const char *const way[] = {"train.strategy=asgd", NULL};
    static result r;
    problem p = even;
    double skipped = 0, bad_steps = 0;
    job j;

    p.poisoned = 1;
    p.poison = (double)NAN;
    j = open_real(*state, p, way);
    start_job(&j);
    for (int t = 0; t < BLOCKS; t++) {
        bm_block_report report;

        assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
        skipped += report.service->pushes - report.service->updates;
        bad_steps += report.bad_steps;
    }
    assert_true(skipped == 6 && bad_steps == 6);
    assert_ok(bm_trainer_global(j.trainer, r.model));
    for (int i = 0; i < N; i++)
        assert_true(isfinite(r.model[i]));
    close_job(&j);
}

/* With easgd, whose workers keep their models: the worker goes on with W. */
static void test_a_worker_that_is_not_finite_takes_w(void **state)
{
    static const char *const way[] = {"train.strategy=easgd", "easgd.period=2",
                                      NULL};
    problem p = even;
    job j;

    p.poisoned = 1;
    p.poison = 3e38;
    j = open_real(*state, p, way);
    start_job(&j);
    for (int t = 0; t < EPOCHS * BLOCKS; t++) {
        bm_state states[STATES];
        bm_block_report report;
        size_t n = 0;

        assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
        assert_true(t == 2 ? report.bad_steps > 0 : report.bad_steps == 0);
        n = bm_trainer_state(j.trainer, states, STATES);
        for (size_t i = 0; i < n; i++)
            assert_true(bm_all_finite(states[i].x, states[i].count));
    }
    close_job(&j);
}

/* Every second push, the first of them, is NaN. */
static bm_status gradient_with_nan(void *self, bm_params *params, int worker,
                                   int64_t step, double *samples)
{
    BM_TRY(gradient_of_one(self, params, worker, step, samples));
    if (step % 2 == 0)
        params->g[0] = NAN;
    return BM_OK;
}

/* Of a push of numbers the worker knows the version; a push of NaN makes none. Only
 * one worker pushes, three times between two fetches: it misses no version. */
static void test_a_worker_knows_the_versions_of_its_pushes(void **state)
{
    static const char *const settings[] = {"clock.kind=real",
                                           "train.strategy=asgd",
                                           "asgd.fetch_every=3",
                                           "sgd.momentum=0",
                                           STEADY,
                                           NULL};
    problem p = {.workers = bm_comm_size(*state), .batch = BATCH};
    bm_block_report report;
    job j = open_job(*state, p, settings);
    bm_task task = {&j.problem,
                    move,
                    gradient_with_nan,
                    read_score,
                    count_steps_of_one,
                    epoch_size,
                    NULL,
                    NULL};

    assert_ok(bm_trainer_open(&j.trainer, j.config, j.comm, &j.params, &task));
    assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
    assert_true(report.service->pushes == 5 && report.service->updates == 2);
    assert_true(report.service->stale[0] == 5 * report.service->shards);
    assert_true(report.service->mean == 0);
    close_job(&j);
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
        TEST(test_ranks_that_wait_in_real_time_do_not_look_stuck),
        TEST(test_shards_cover_the_vector),
        TEST(test_shards_are_one_server_where_workers_take_turns),
        TEST(test_a_shard_scales_stale_pushes),
        TEST(test_the_busiest_rank_sends_less_with_shards),
        TEST(test_a_worker_that_pushes_nan_is_left_out),
        TEST(test_a_worker_that_is_not_finite_takes_w),
        TEST(test_a_worker_knows_the_versions_of_its_pushes),
        TEST(test_real_time_needs_a_rank_for_each_worker),
    };
    return RUN_GROUP_MPI("server", tests);
}
