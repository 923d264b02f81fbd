/* Fragments and late exchanges, against their equations in double, on any
 * number of ranks. */
#include "bmuf/strategies/fragments.h"
#include "tests/support/reference/equations.h"
#include "tests/support/reference/halts.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ALL = EPOCHS * BLOCKS, MOST = 3 };

#define BMUF "train.strategy=bmuf"
#define TWO  "block.fragments=2"
#define LATE "block.overlap=yes"
#define ADAM "sgd.update=adamw", "sgd.epsilon=1"

static const char *const ways[][7] = {
    {BMUF, TWO, NULL},
    {BMUF, LATE, NULL},
    {BMUF, LATE, "block.fragments=3", "train.ema=0.75", NULL},
    {BMUF, TWO, "sgd.local_state=keep", "job.coordinator=root", "train.ema=0.5",
     NULL},
    {"train.strategy=average", LATE, TWO, "job.sum=exact",
     "sgd.local_state=keep", NULL},
    {"train.strategy=slowmo", "block.fragments=3", "block.warmup=2",
     "train.ema=0.5", NULL},
    {"train.strategy=pika", LATE, "block.warmup=1", "train.ema=0.5", NULL},
    {BMUF, TWO, LATE, ADAM, "sgd.local_state=keep", NULL},
};

static void test_ranks_and_halts_change_no_bits(void **state)
{
    FOR_EACH (k, ways) {
        assert_ranks_change_no_bits(*state, ragged, ways[k]);
        assert_halts_change_no_bits(*state, ragged, ways[k]);
    }
}

/* A run, and what goes wrong in it. */
typedef struct method {
    const problem *problem;
    size_t fragments;
    bool late, nesterov, keep;
    bool slowmo; /* Delta is -gamma u, u in units of gradients */
    double mu, eta, zeta;
    const double *rates; /* [ALL] */
    int lost;            /* worker k + 1 is left out of block 2; or 0 */
} method;

static const double constant[ALL] = {0.25, 0.25, 0.25, 0.25, 0.25, 0.25};
static const double falling[ALL] = {0.25, 0.25, 0.125, 0.125, 0.125, 0.0625};

/* At chunks of 1024 numbers: the params have no segments. */
static const size_t cuts[MOST + 1][MOST + 1] = {
    {0}, {0, N}, {0, 1024, N}, {0, 1024, 2048, N}};

typedef struct vectors {
    double own[WORKERS][N], v[WORKERS][N], start[N], model[N];
    double delta[N]; /* slowmo: -u */
    double seen[WORKERS][MOST];
} vectors;

static void learn_block(const method *m, int t, vectors *a)
{
    static double x[N];
    const size_t *cut = cuts[m->fragments];
    size_t late = (size_t)(t + (int)m->fragments - 1) % m->fragments;

    for (int k = 0; k < WORKERS; k++) {
        bm_position at = position_of(t);
        bool lost = t == 2 && k == m->lost - 1;

        if (!m->keep)
            memset(a->v[k], 0, sizeof a->v[k]);
        memcpy(x, a->own[k], sizeof x);
        learn_share(m->problem, at, k, m->mu, m->rates[t], x, a->v[k]);
        for (size_t i = 0; i < N; i++) {
            bool corrected =
                m->late && t > 0 && i >= cut[late] && i < cut[late + 1];

            if (lost)
                a->own[k][i] = a->start[i];
            else
                a->own[k][i] =
                    corrected ? a->start[i] + (x[i] - a->own[k][i]) : x[i];
        }
        for (size_t f = 0; f < m->fragments; f++)
            a->seen[k][f] =
                lost ? 0 : a->seen[k][f] + (double)share(m->problem, at, k);
        if (lost)
            memset(a->v[k], 0, sizeof a->v[k]);
    }
}

static void exchange_fragment(const method *m, int t, vectors *a)
{
    size_t f = (size_t)t % m->fragments;
    double total = 0, gamma = m->slowmo ? m->rates[t] : 1;

    for (int k = 0; k < WORKERS; k++)
        total += a->seen[k][f];
    for (size_t i = cuts[m->fragments][f]; i < cuts[m->fragments][f + 1]; i++) {
        double mean = 0;

        for (int k = 0; k < WORKERS; k++)
            mean += a->seen[k][f] / total * (a->own[k][i] - a->start[i]);
        a->delta[i] = m->eta * a->delta[i] + m->zeta * mean / gamma;
        a->model[i] += gamma * a->delta[i];
        a->start[i] = a->model[i] + (m->nesterov ? m->eta * a->delta[i] : 0);
        for (int k = 0; k < WORKERS && !m->late; k++)
            a->own[k][i] = a->start[i];
    }
    for (int k = 0; k < WORKERS; k++)
        a->seen[k][f] = 0;
}

/* Compares the trainer with these equations, block by block. */
static void check(bm_comm *comm, const method *m, problem p,
                  const char *strategy, const char *const *settings)
{
    static vectors a;
    static result got;
    char fragments[40];
    job j = open_job(comm, p, settings);

    memset(&a, 0, sizeof a);
    memset(&got, 0, sizeof got);
    snprintf(fragments, sizeof fragments, "block.fragments=%zu", m->fragments);
    assert_ok(bm_config_set(j.config, strategy));
    assert_ok(bm_config_set(j.config, fragments));
    assert_ok(bm_config_set(j.config, m->late ? LATE : "block.overlap=no"));
    assert_ok(bm_config_set(j.config, m->keep ? "sgd.local_state=keep"
                                              : "sgd.local_state=reset"));
    start_job(&j);
    for (int t = 0; t < ALL; t++) {
        bm_block_report report;

        learn_block(m, t, &a);
        exchange_fragment(m, t, &a);
        assert_ok(bm_trainer_block(j.trainer, m->rates[t], &report));
        assert_int_equal(report.left_out, t == 2 && m->lost > 0);
        assert_ok(bm_trainer_global(j.trainer, got.model));
        for (int i = 0; i < N; i++)
            assert_true(near(got.model[i], a.model[i], 2e-6));
    }
    close_job(&j);
}

static void test_fragments_follow_their_equations_in_double(void **state)
{
    static const char *const settings[] = {STEADY, "bmuf.momentum=0.75",
                                           "bmuf.rate=0.875",
                                           "sgd.momentum=0.5", NULL};

    for (size_t n = 1; n <= MOST; n++)
        for (int late = n == 1; late < 2; late++) {
            method m = {.problem = &ragged,
                        .fragments = n,
                        .late = late,
                        .keep = n % 2 == 0,
                        .nesterov = true,
                        .mu = 0.5,
                        .eta = 0.75,
                        .zeta = 0.875,
                        .rates = constant};

            check(*state, &m, ragged, BMUF, settings);
            m.problem = &even;
            m.nesterov = m.keep = false;
            m.eta = 0;
            m.zeta = 1;
            check(*state, &m, even, "train.strategy=average", settings);
        }
}

/* A fragment's block lasts until its next exchange, n blocks of 600 frames. */
static void test_time_constant_counts_the_blocks_of_a_fragment(void **state)
{
    static const char *const settings[] = {STEADY, "bmuf.time_constant=1200",
                                           "sgd.momentum=0.5", NULL};

    for (size_t n = 1; n <= MOST; n++)
        for (int late = n == 1; late < 2; late++) {
            const method m = {.problem = &ragged,
                              .fragments = n,
                              .late = late,
                              .nesterov = true,
                              .mu = 0.5,
                              .eta = exp(-0.5 * (double)n),
                              .zeta = 1,
                              .rates = constant};

            check(*state, &m, ragged, BMUF, settings);
        }
}

/* As Wang et al. (2020) write it: no rate before that of the exchange is in u. */
static void test_delta_follows_the_rate(void **state)
{
    static const char *const settings[] = {STEADY, "sgd.momentum=0.5",
                                           "slowmo.slowmo_momentum=0.75", NULL};

    for (size_t n = 1; n <= MOST; n++)
        for (int late = n == 1; late < 2; late++) {
            const method m = {.problem = &ragged,
                              .fragments = n,
                              .late = late,
                              .slowmo = true,
                              .mu = 0.5,
                              .eta = 0.75,
                              .zeta = 1,
                              .rates = falling};

            check(*state, &m, ragged, "train.strategy=slowmo", settings);
        }
}

/* The Delta of another run. */
static float delta_of_old(int i)
{
    return (float)(i % 7 - 3);
}

/* Opens a branch with W = 0 and that Delta, made at a rate of 0.5. */
static bm_strategy *open_branch(job *j, const char *name)
{
    static bm_state states[4 * BM_STRATEGY_STATES + 2 * WORKERS + 2];
    bm_strategy *s = NULL;
    size_t n = 0;

    memset(j->params.w, 0, N * sizeof(float));
    assert_ok(bm_fragments_open(&s, name, j->config, j->comm, &j->params));
    n = bm_strategy_state(s, states);
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0;
             strcmp(states[k].name, "delta") == 0 && i < states[k].count; i++)
            states[k].x[i] = delta_of_old((int)(states[k].offset + i));
    s->rate = 0.5;
    assert_ok(bm_strategy_resume(s, NULL));
    return s;
}

/* A block at a rate of 0.25 in which workers change nothing. They begin it at
 * `begin` times Delta, unless that is NAN. */
static void stand_still(job *j, bm_strategy *s, int t, float begin)
{
    int rank = bm_comm_rank(j->comm);

    bm_strategy_block(s, t, 0.25);
    assert_ok(
        bm_strategy_update_settings(s, &(bm_run_point){.workers = WORKERS}));
    for (int k = bm_comm_first(j->comm, WORKERS, rank);
         k < bm_comm_first(j->comm, WORKERS, rank + 1); k++) {
        bool good = true;

        bm_strategy_begin(s, k, NULL);
        for (int i = 0; i < N && !isnan(begin); i++)
            assert_true(j->params.w[i] == begin * delta_of_old(i));
        assert_ok(bm_strategy_worker_end(s, k, 1, &good));
    }
    assert_ok(bm_strategy_exchange(s));
}

/* W is so many times that Delta. */
static void assert_moved(bm_strategy *s, float times)
{
    static float got[N];

    assert_ok(bm_strategy_global(s, got));
    for (int i = 0; i < N; i++)
        assert_true(got[i] == times * delta_of_old(i));
}

/* In the first exchanges of a run at another rate. Only Delta moves the model. */
static void test_delta_of_another_run_follows_the_rate(void **state)
{
    static const char *const settings[] = {TWO, "slowmo.slowmo_momentum=0.75",
                                           NULL};
    job j = open_job(*state, even, settings);
    bm_strategy *s = open_branch(&j, "slowmo");

    for (int t = 0; t < 2; t++)
        stand_still(&j, s, t, NAN);
    assert_moved(s, 0.75F * 0.5F);
    bm_strategy_close(s);
    close_job(&j);
}

/* As without fragments, workers begin at W + eta Delta under Nesterov momentum.
 * They are where the start model is, so that the first G of each fragment is 0
 * and Delta moves W by eta Delta. */
static void test_branch_begins_where_delta_leads(void **state)
{
    static const char *const settings[][4] = {
        {"bmuf.momentum=0.5", TWO, NULL},
        {"bmuf.momentum=0.5", LATE, NULL},
        {"bmuf.momentum=0.5", LATE, TWO, NULL},
        {"bmuf.momentum=0.5", "bmuf.nesterov=no", TWO, NULL},
    };
    static const float begins[] = {0.5F, 0.5F, 0.5F, 0};
    static const int fragments[] = {2, 1, 2, 2};

    FOR_EACH (k, settings) {
        job j = open_job(*state, even, settings[k]);
        bm_strategy *s = open_branch(&j, "bmuf");

        stand_still(&j, s, 0, begins[k]);
        for (int t = 1; t < fragments[k]; t++)
            stand_still(&j, s, t, NAN);
        assert_moved(s, 0.5F);
        bm_strategy_close(s);
        close_job(&j);
    }
}

/* In any fragment: of two, block 2 exchanges the first one, and the weight that
 * goes wrong is in the second. The worker's model is replaced by the start
 * model. */
static void test_worker_that_goes_wrong_is_left_out(void **state)
{
    static const char *const settings[] = {
        "bmuf.momentum=0.5", "sgd.momentum=0.25", "train.diverged=1000", NULL};
    static const problem broken[] = {
        {.poison = 3e38}, {.poison = 1e6, .excess = 1e9}, {.excess = NAN}};

    for (size_t n = 1; n <= MOST; n++)
        for (int late = n == 1; late < 2; late++) {
            FOR_EACH (i, broken) {
                const method m = {.problem = &even,
                                  .fragments = n,
                                  .late = late,
                                  .keep = true,
                                  .nesterov = true,
                                  .mu = 0.25,
                                  .eta = 0.5,
                                  .zeta = 1,
                                  .rates = constant,
                                  .lost = 1 + 1};
                problem p = broken[i];

                p.workers = WORKERS;
                p.batch = BATCH;
                p.poisoned = 1 + 1;
                if ((i + n) % 3 != 0 || n == 2) /* saves time */
                    check(*state, &m, p, BMUF, settings);
            }
        }
}

static void test_divergence_of_all_workers_ends_training(void **state)
{
    static const char *const all[][4] = {{BMUF, TWO, NULL},
                                         {BMUF, TWO, LATE, NULL}};
    const problem p = {.workers = 1,
                       .batch = BATCH,
                       .poisoned = 1,
                       .poison = 1e6,
                       .excess = 1e6};
    bm_block_report report;
    bm_comm *one = NULL;

    (void)state;
    assert_ok(bm_comm_open_alone(&one));
    FOR_EACH (k, all) {
        job j = open_job(one, p, all[k]);

        start_job(&j);
        assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
        assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
        assert_int_equal(bm_trainer_block(j.trainer, 0.25, &report),
                         BM_ERR_NUMERIC);
        close_job(&j);
    }
    bm_comm_close(one);
}

/* Without block momentum one worker is plain SGD. */
static void test_one_worker_is_plain_sgd(void **state)
{
    static const char *const local[] = {"train.strategy=local", STEADY, NULL};
    static const char *const all[][7] = {
        {BMUF, "bmuf.momentum=0", "sgd.local_state=keep", STEADY, TWO, NULL},
        {BMUF, "bmuf.momentum=0", "sgd.local_state=keep", STEADY, LATE, NULL},
        {BMUF, "bmuf.momentum=0", "sgd.local_state=keep", STEADY, LATE, TWO,
         NULL}};
    const problem p = {.workers = 1, .batch = BATCH};
    static result expected, got;
    bm_comm *one = NULL;

    (void)state;
    assert_ok(bm_comm_open_alone(&one));
    run_job(one, p, local, &expected);
    FOR_EACH (k, all) {
        run_job(one, p, all[k], &got);
        for (int t = 0; t < ALL; t++)
            assert_true(near(got.score[t].loss, expected.score[t].loss, 1e-5));
    }
    bm_comm_close(one);
}

/* One fragment, which workers take over whole, is the strategy itself. */
static void test_one_fragment_is_the_strategy(void **state)
{
    static const char *const names[] = {"bmuf", "average", "slowmo", "pika",
                                        "diloco"};
    static const char *const settings[] = {TWO, NULL};
    static float expected[N], got[N];
    job j = open_job(*state, even, settings);
    int rank = bm_comm_rank(j.comm);
    int first = bm_comm_first(j.comm, WORKERS, rank);
    int last = bm_comm_first(j.comm, WORKERS, rank + 1);

    assert_ok(bm_config_set(j.config, "block.fragments=1"));
    FOR_EACH (k, names) {
        bm_strategy *s[2] = {NULL, NULL};

        memset(j.params.w, 0, N * sizeof(float));
        assert_ok(
            bm_strategy_open(&s[0], names[k], j.config, j.comm, &j.params));
        assert_ok(
            bm_fragments_open(&s[1], names[k], j.config, j.comm, &j.params));
        for (int of = 0; of < 2; of++)
            for (int t = 0; t < 5; t++) {
                bm_strategy_block(s[of], t, t < 3 ? 0.5 : 0.25);
                for (int worker = first; worker < last; worker++) {
                    bool good = true;

                    bm_strategy_begin(s[of], worker, NULL);
                    for (int i = 0; i < N; i++)
                        j.params.w[i] += (float)(0.25 * worker + t -
                                                 0.3 * j.params.w[i] + i % 7);
                    assert_ok(bm_strategy_worker_end(s[of], worker, 10 + worker,
                                                     &good));
                    assert_true(good);
                }
                assert_ok(bm_strategy_exchange(s[of]));
                assert_ok(bm_strategy_global(s[of], of ? got : expected));
            }
        assert_memory_equal(got, expected, sizeof got);
        bm_strategy_close(s[0]);
        bm_strategy_close(s[1]);
    }
    close_job(&j);
}

/* A late exchange is reported a block later. */
static void test_update_of_an_exchange_is_reported(void **state)
{
    static const char *const plain[] = {BMUF, TWO, STEADY, "block.warmup=5",
                                        NULL};
    static const char *const late[] = {BMUF, LATE, STEADY, NULL};
    static const char *const early[] = {BMUF, STEADY, NULL};
    static result got, expected;

    run_job(*state, even, plain, &got);
    assert_true(got.update[5].weight == 6 * BATCH * WORKERS);
    assert_true(got.update[5].g_norm > 0 && near(got.update[5].cos, 1, 1e-9));
    run_job(*state, even, early, &expected);
    run_job(*state, even, late, &got);
    assert_true(isnan(got.update[0].g_norm) && got.update[0].weight == 0);
    assert_true(
        near(got.update[1].g_norm / expected.update[0].g_norm, 1, 1e-6));
}

/* Of two ranks. A fragment of one chunk is one rank's slice: the other rank
 * sends its mean, and gets the start model back. */
static void test_exchange_sends_one_fragment(void **state)
{
    static const char *const settings[] = {BMUF, STEADY, "block.fragments=3",
                                           NULL};
    static const double floats[MOST] = {1024, 1024, N - 2048};
    const problem p = {.workers = 4, .batch = BATCH};
    bm_comm *comm = *state;
    job j;

    if (bm_comm_size(comm) != 2)
        return;
    j = open_job(comm, p, settings);
    start_job(&j);
    for (int t = 0; t < ALL; t++) {
        bm_block_report report;

        assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
        assert_true((double)(report.traffic.sent + report.traffic.shared) ==
                    4 * floats[t % MOST]);
    }
    close_job(&j);
}

static bm_status fail_on_the_last_rank(void *self, bm_params *params,
                                       int worker, int64_t step,
                                       double *samples)
{
    const problem *p = self;

    if (worker == WORKERS - 1 && p->at.block == 1)
        return BM_FAIL(BM_ERR_IO, "the disk is gone");
    return gradient(self, params, worker, step, samples);
}

/* While a late exchange is under way. */
static void test_failure_of_one_rank_fails_all(void **state)
{
    static const char *const settings[] = {BMUF, LATE, NULL};
    bm_block_report report;
    job j = open_job(*state, even, settings);
    bm_task task = {&j.problem, move,        fail_on_the_last_rank,
                    read_score, count_steps, epoch_size,
                    NULL,       NULL};

    assert_ok(bm_trainer_open(&j.trainer, j.config, j.comm, &j.params, &task));
    assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
    assert_int_equal(bm_trainer_block(j.trainer, 0.25, &report), BM_ERR_IO);
    assert_non_null(strstr(bm_last_error(), "the disk is gone"));
    close_job(&j);
}

/* Not inside a layer, not at statistics, otherwise as even as possible. */
static void test_cuts_are_between_layers(void **state)
{
    static const bm_segment layers[] = {
        {.name = "0.lstm.wx", .offset = 0},
        {.name = "0.lstm.b", .offset = 400},
        {.name = "1.batchnorm.scale", .offset = 500},
        {.name = "10.lstm.wx", .offset = 520},
        {.name = "10.lstm.wh", .offset = 700},
        {.name = "11.linear.w", .offset = 900},
        {.name = "1.batchnorm.mean", .offset = 960},
    };
    static const struct {
        long n;
        size_t begin[5];
    } cases[] = {
        {1, {0, 1000}},
        {2, {0, 500, 1000}},
        {3, {0, 500, 520, 1000}},
        {4, {0, 500, 520, 900, 1000}},
    };
    bm_params p = {.n = 1000,
                   .n_learned = 960,
                   .segments = layers,
                   .n_segments = sizeof layers / sizeof layers[0]};
    size_t begin[8];

    (void)state;
    FOR_EACH (k, cases) {
        assert_ok(bm_fragments_cut(&p, cases[k].n, begin));
        assert_memory_equal(begin, cases[k].begin,
                            ((size_t)cases[k].n + 1) * sizeof *begin);
    }
    assert_int_equal(bm_fragments_cut(&p, 5, begin), BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "can be cut into 4 at most"));
}

static void test_averaged_local_state_needs_whole_models(void **state)
{
    static const char *const bad[][5] = {
        {BMUF, TWO, "sgd.local_state=average", NULL},
        {BMUF, LATE, ADAM, "sgd.local_state=extrapolate"},
    };

    for (size_t i = 0; i < 2; i++) {
        const char *settings[6] = {bad[i][0], bad[i][1], bad[i][2],
                                   bad[i][3], bad[i][4], NULL};
        job j = open_job(*state, even, settings);
        bm_task task = {&j.problem,  move,       gradient, read_score,
                        count_steps, epoch_size, NULL,     NULL};

        assert_int_equal(
            bm_trainer_open(&j.trainer, j.config, j.comm, &j.params, &task),
            BM_ERR_CONFIG);
        assert_non_null(strstr(bm_last_error(), "exchanged as a whole"));
        close_job(&j);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_ranks_and_halts_change_no_bits),
        TEST(test_fragments_follow_their_equations_in_double),
        TEST(test_time_constant_counts_the_blocks_of_a_fragment),
        TEST(test_delta_follows_the_rate),
        TEST(test_delta_of_another_run_follows_the_rate),
        TEST(test_branch_begins_where_delta_leads),
        TEST(test_worker_that_goes_wrong_is_left_out),
        TEST(test_divergence_of_all_workers_ends_training),
        TEST(test_one_worker_is_plain_sgd),
        TEST(test_one_fragment_is_the_strategy),
        TEST(test_update_of_an_exchange_is_reported),
        TEST(test_exchange_sends_one_fragment),
        TEST(test_failure_of_one_rank_fails_all),
        TEST(test_cuts_are_between_layers),
        TEST(test_averaged_local_state_needs_whole_models),
    };
    return RUN_GROUP_MPI("fragments", tests);
}
