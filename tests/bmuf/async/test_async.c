/*
 * Asynchronous strategies on the virtual clock, on any number of ranks: against
 * their recurrences in double, and against each other where two are equal.
 */
#include "bmuf/async/virtual_clock.h"
#include "tests/support/reference/equations.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- strategies that are equal ------------------------------------------- */

static void assert_same(bm_comm *comm, problem p, const char *const *one,
                        const char *const *other)
{
    static result a, b;

    run_job(comm, p, one, &a);
    run_job(comm, p, other, &b);
    assert_memory_equal(a.model, b.model, sizeof a.model);
    assert_memory_equal(a.score, b.score, sizeof a.score);
    assert_true(a.bad_steps == b.bad_steps);
}

/* At any speeds of the workers. */
static void test_softsync_of_all_equals_ssgd(void **state)
{
    static const char *const local[][3] = {
        {"sgd.momentum=0.5", "sgd.nesterov=yes", "job.sum=tree"},
        {"sgd.clip=0.5", "sgd.weight_decay=0.01", "job.sum=exact"},
        {"sgd.update=adamw", "sgd.epsilon=1", "job.coordinator=root"}};

    FOR_EACH (k, local) {
        const char *ssgd[] = {"train.strategy=ssgd", STEADY,      local[k][0],
                              local[k][1],           local[k][2], NULL};
        const char *soft[] = {"train.strategy=softsync",
                              "softsync.n=1",
                              "clock.spread=0.5",
                              "clock.times=1 3 2 5 1",
                              STEADY,
                              local[k][0],
                              local[k][1],
                              local[k][2],
                              NULL};

        assert_same(*state, even, soft, ssgd);
        assert_same(*state, ragged, soft, ssgd);
    }
}

static void test_softsync_of_single_pushes_equals_asgd(void **state)
{
    static const char *const soft[] = {
        "train.strategy=softsync", "softsync.n=5", "softsync.scaling=inverse",
        "clock.times=1 3 2 5 1",   STEADY,         NULL};
    static const char *const asgd[] = {"train.strategy=asgd",
                                       "asgd.scaling=inverse",
                                       "clock.times=1 3 2 5 1", STEADY, NULL};

    assert_same(*state, ragged, soft, asgd);
}

/* The task gives all four workers 6 steps; those that block.workers names count. */
static void test_groups_of_softsync_are_of_the_workers_in_a_block(void **state)
{
    static const char *const settings[] = {
        "train.strategy=softsync", "softsync.n=2", "block.workers=2@0 4@1",
        "clock.spread=0",          STEADY,         NULL};
    problem p = even;
    bm_block_report report;
    job j;

    p.workers = 4;
    j = open_job(*state, p, settings);
    start_job(&j);
    for (int t = 0; t < EPOCHS * BLOCKS; t++) {
        int group = t < BLOCKS ? 1 : 2; /* floor(workers / n) */

        assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
        assert_true(report.service->updates * group == 4 * 6);
    }
    close_job(&j);
}

/* For all kinds of local updates. */
static void test_asgd_of_one_worker_equals_local_sgd(void **state)
{
    static const char *const local[][2] = {
        {"sgd.momentum=0.5", "sgd.nesterov=yes"},
        {"sgd.clip=0.5", "sgd.weight_decay=0.01"},
        {"sgd.update=adamw", "sgd.epsilon=1"}};
    static const problem alone = {.workers = 1, .batch = BATCH};
    bm_comm *one = NULL;

    (void)state;
    assert_ok(bm_comm_open_alone(&one));
    FOR_EACH (k, local) {
        const char *serial[] = {"train.strategy=local", STEADY, local[k][0],
                                local[k][1], NULL};
        const char *asgd[] = {
            "train.strategy=asgd", "asgd.scaling=none", STEADY,
            local[k][0],           local[k][1],         NULL};

        assert_same(one, alone, asgd, serial);
    }
    bm_comm_close(one);
}

/* Collective. The model of one worker, on all ranks. */
static void kept_model(job *j, int worker, double *out)
{
    bm_state states[STATES];
    size_t n = bm_trainer_state(j->trainer, states, STATES);
    char name[32];

    snprintf(name, sizeof name, "worker.%d", worker);
    memset(out, 0, N * sizeof *out);
    for (size_t i = 0; i < n; i++)
        for (int x = 0; strcmp(states[i].name, name) == 0 && x < N; x++)
            out[x] = states[i].x[x];
    assert_ok(bm_comm_sum(j->comm, out, N));
}

/* The model of a worker that trains without a server. */
static void train_alone(int worker, const char *const *settings, float *model)
{
    static const bm_sgd_settings set = {.momentum = 0.5};
    job j = open_job(NULL, ragged, settings);
    bm_sgd *sgd = NULL;

    assert_ok(bm_sgd_new(&sgd, &set, &j.params));
    for (int t = 0; t < EPOCHS * BLOCKS; t++) {
        j.problem.at = (bm_position){t / BLOCKS, t % BLOCKS};
        for (int64_t i = 0; i < count_steps(&j.problem, worker); i++) {
            double samples = 0;

            assert_ok(gradient(&j.problem, &j.params, worker, i, &samples));
            bm_sgd_step(sgd, 0.25F);
        }
    }
    memcpy(model, j.params.w, N * sizeof *model);
    bm_sgd_free(sgd);
    close_job(&j);
}

/* Bit for bit, with empty shares, too; and the server's model stays 0. */
static void test_easgd_with_alpha_0_trains_workers_alone(void **state)
{
    static const char *const settings[] = {"train.strategy=easgd",
                                           "easgd.alpha=0",
                                           "easgd.period=2",
                                           "sgd.momentum=0.5",
                                           "clock.times=1 2 3 4 5",
                                           STEADY,
                                           NULL};
    static double kept[N];
    static float alone[N];
    static result r;
    job j = open_job(*state, ragged, settings);

    start_job(&j);
    run_blocks(&j, 0, EPOCHS * BLOCKS, &r);
    for (int k = 0; k < WORKERS; k++) {
        kept_model(&j, k, kept);
        train_alone(k, settings, alone);
        for (int i = 0; i < N; i++)
            assert_true(kept[i] == (double)alone[i]);
    }
    for (int i = 0; i < N; i++)
        assert_true(r.model[i] == 0);
    close_job(&j);
}

/* ---- the recurrences in double ------------------------------------------- */

/* Settings, and the parameters that they mean. */
typedef struct scheme {
    const char *settings[10];
    enum { GRADIENT, CHANGE, ELASTIC } push;
    int group, push_every, fetch_every;
    double alpha, mu;
    bool scaled, nesterov;
} scheme;

/* A worker of the recurrence. */
typedef struct worker_state {
    double w[N], v[N], push[N];
    double time; /* of its next push */
    double samples;
    int64_t step; /* its next mini-batch */
    int64_t from; /* the first of its period */
    int known, since;
    bool waiting;
} worker_state;

typedef struct simulation {
    const scheme *s;
    problem p;
    bm_position at;
    double w[N], v[N]; /* the server */
    int version;
    worker_state k[WORKERS];
    double stale[200];
} simulation;

static const double seconds[WORKERS] = {1, 2.25, 1.5, 4, 1.125};
#define TIMES "clock.times=1 2.25 1.5 4 1.125", "clock.spread=0"
#define RATE  0.25

static double gradient_at(const simulation *x, int k, int64_t step,
                          const double *w, double *g)
{
    int64_t n = batch_size(&x->p, x->at, k, step);

    memset(g, 0, N * sizeof *g);
    for (int64_t j = 0; j < n; j++) {
        sample s = sample_of(&x->p, x->at, k, step, j);
        double r = -s.y;
        for (int i = 0; i < 4; i++)
            r += s.a[i] * w[s.index[i]];
        for (int i = 0; i < 4; i++)
            g[s.index[i]] += r * s.a[i] / (double)n;
    }
    return (double)n;
}

static void momentum(const simulation *x, const double *g, double *w, double *v)
{
    for (int i = 0; i < N; i++) {
        v[i] = x->s->mu * v[i] - RATE * g[i];
        w[i] += x->s->nesterov ? x->s->mu * v[i] - RATE * g[i] : v[i];
    }
}

static bool has_data(const simulation *x, int k)
{
    return batch_size(&x->p, x->at, k, x->k[k].from) > 0;
}

/* Trains for a period, from time `now`. */
static void train_period(simulation *x, int k, double now)
{
    static double g[N], before[N];
    worker_state *a = &x->k[k];

    a->time = now;
    a->samples = 0;
    a->waiting = false;
    a->from = a->step;
    memset(a->push, 0, sizeof a->push);
    memcpy(before, a->w, sizeof before);
    for (int i = 0;
         i < x->s->push_every && batch_size(&x->p, x->at, k, a->step) > 0;
         i++) {
        a->samples += gradient_at(x, k, a->step++, a->w, g);
        a->time += seconds[k];
        a->since++;
        if (x->s->push != GRADIENT)
            momentum(x, g, a->w, a->v);
        for (int j = 0; x->s->push == GRADIENT && j < N; j++) {
            a->push[j] += g[j];
            a->w[j] -= RATE * g[j];
        }
    }
    for (int j = 0; x->s->push == CHANGE && j < N; j++)
        a->push[j] = a->w[j] - before[j];
}

static int next_to_push(const simulation *x)
{
    int next = -1;

    for (int k = 0; k < WORKERS; k++)
        if (has_data(x, k) && !x->k[k].waiting &&
            (next < 0 || x->k[k].time < x->k[next].time))
            next = k;
    return next;
}

static double damped(const simulation *x, int tau)
{
    return tau == 0 || !x->s->scaled ? 1 : 1. / tau;
}

/* One update of all waiting workers. */
static void serve(simulation *x, double now)
{
    static double g[N];
    double total = 0;
    bool in[WORKERS];

    memset(g, 0, sizeof g);
    for (int k = 0; k < WORKERS; k++)
        total += (in[k] = x->k[k].waiting) ? x->k[k].samples : 0;
    for (int k = 0; k < WORKERS; k++) {
        worker_state *a = &x->k[k];
        int tau = x->version - a->known;

        if (!in[k])
            continue;
        x->stale[tau]++;
        for (int i = 0; i < N; i++) {
            double pull = x->s->alpha * (a->w[i] - x->w[i]);

            if (x->s->push == ELASTIC)
                a->w[i] -= pull;
            g[i] += x->s->push == ELASTIC
                        ? pull
                        : a->samples / total * damped(x, tau) * a->push[i];
        }
    }
    if (x->s->push == GRADIENT)
        momentum(x, g, x->w, x->v);
    for (int i = 0; x->s->push != GRADIENT && i < N; i++)
        x->w[i] += g[i];
    x->version++;
    for (int k = 0; k < WORKERS; k++)
        if (in[k]) {
            worker_state *a = &x->k[k];

            a->known++;
            if (x->s->push == ELASTIC)
                a->known = x->version;
            if (x->s->push != ELASTIC && a->since >= x->s->fetch_every) {
                memcpy(a->w, x->w, sizeof a->w);
                a->known = x->version;
                a->since = 0;
            }
            train_period(x, k, now);
        }
}

static void run_block(simulation *x)
{
    int next = -1, waiting = 0;
    double now = 0;

    x->version = 0;
    memset(x->stale, 0, sizeof x->stale);
    for (int k = 0; k < WORKERS; k++) {
        worker_state *a = &x->k[k];

        a->step = a->since = a->known = 0;
        if (x->s->push != ELASTIC) {
            memcpy(a->w, x->w, sizeof a->w);
            memset(a->v, 0, sizeof a->v);
        }
        train_period(x, k, 0);
    }
    for (;;) {
        next = next_to_push(x);
        if (next >= 0) {
            now = x->k[next].time;
            x->k[next].waiting = true;
            waiting++;
        }
        if (next < 0 && waiting == 0)
            return;
        if (waiting == x->s->group || next < 0 || next_to_push(x) < 0) {
            serve(x, now);
            waiting = 0;
        }
    }
}

static const scheme schemes[] = {
    {{"train.strategy=asgd", "sgd.momentum=0.5", NULL},
     GRADIENT,
     1,
     1,
     1,
     .mu = 0.5},
    {{"train.strategy=asgd", "sgd.momentum=0.25", "asgd.scaling=inverse", NULL},
     GRADIENT,
     1,
     1,
     1,
     .mu = 0.25,
     .scaled = true},
    {{"train.strategy=asgd", "sgd.momentum=0", "asgd.push_every=2",
      "asgd.fetch_every=4", NULL},
     GRADIENT,
     1,
     2,
     4,
     .mu = 0},
    {{"train.strategy=asgd", "sgd.momentum=0.5", "asgd.update=local",
      "asgd.push_every=3", "asgd.fetch_every=3", "asgd.scaling=inverse", NULL},
     CHANGE,
     1,
     3,
     3,
     .mu = 0.5,
     .scaled = true},
    {{"train.strategy=asgd", "sgd.momentum=0.5", "asgd.update=local",
      "asgd.fetch_every=2", NULL},
     CHANGE,
     1,
     1,
     2,
     .mu = 0.5},
    {{"train.strategy=softsync", "sgd.momentum=0.5", "softsync.n=2",
      "softsync.scaling=inverse", NULL},
     GRADIENT,
     2,
     1,
     1,
     .mu = 0.5,
     .scaled = true},
    {{"train.strategy=softsync", "sgd.momentum=0.5", NULL},
     GRADIENT,
     5,
     1,
     1,
     .mu = 0.5},
    {{"train.strategy=easgd", "sgd.momentum=0", "easgd.period=2", NULL},
     ELASTIC,
     1,
     2,
     2,
     .alpha = 0.18},
    {{"train.strategy=easgd", "sgd.momentum=0.5", "sgd.nesterov=yes",
      "easgd.period=1", "easgd.alpha=0.3", NULL},
     ELASTIC,
     1,
     1,
     1,
     .alpha = 0.3,
     .mu = 0.5,
     .nesterov = true},
};

static void assert_follows(bm_comm *comm, const scheme *s)
{
    static simulation x;
    const char *settings[14] = {TIMES, STEADY};
    static result got;
    job j;

    for (int i = 0; s->settings[i] != NULL; i++)
        settings[3 + i] = s->settings[i];
    j = open_job(comm, ragged, settings);
    memset(&x, 0, sizeof x);
    x.s = s;
    x.p = ragged;
    start_job(&j);
    for (int t = 0; t < EPOCHS * BLOCKS; t++) {
        bm_block_report report;

        x.at = (bm_position){t / BLOCKS, t % BLOCKS};
        run_block(&x);
        assert_ok(bm_trainer_block(j.trainer, RATE, &report));
        assert_int_equal(report.service->updates, x.version);
        for (size_t i = 0; i < report.service->n_stale; i++)
            assert_true(report.service->stale[i] == x.stale[i]);
    }
    assert_ok(bm_trainer_global(j.trainer, got.model));
    for (int i = 0; i < N; i++)
        assert_true(near(got.model[i], x.w[i], 2e-6));
    close_job(&j);
}

static void test_all_follow_their_recurrences(void **state)
{
    FOR_EACH (k, schemes)
        assert_follows(*state, &schemes[k]);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_softsync_of_all_equals_ssgd),
        TEST(test_softsync_of_single_pushes_equals_asgd),
        TEST(test_groups_of_softsync_are_of_the_workers_in_a_block),
        TEST(test_asgd_of_one_worker_equals_local_sgd),
        TEST(test_easgd_with_alpha_0_trains_workers_alone),
        TEST(test_all_follow_their_recurrences),
    };
    return RUN_GROUP_MPI("async", tests);
}
