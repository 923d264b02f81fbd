/*
 * Every strategy, alone and with the options that it goes with, while the
 * learning rate falls and some shares are empty: the same bits on any number of
 * ranks, and in a run that is stopped and resumed after every block. Those that
 * are a mean or a filter are compared with their equations in double.
 */
#include "comm/sum/sum.h"
#include "sgd/layer_rates.h"
#include "tests/support/reference/equations.h"
#include "tests/support/reference/halts.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADAM "sgd.update=adamw", "sgd.epsilon=1"
#define RMS  "sgd.update=rmsprop", "sgd.epsilon=1"
#define MUON "sgd.update=muon"
#define KEEP "sgd.local_state=keep"
#define EMA  "train.ema=0.5"
#define WARM "block.warmup=1"

/* A strategy, and settings. */
static const char *const methods[][8] = {
    {"local", EMA, "sgd.momentum=0.5"},
    {"local", ADAM},
    {"average", EMA},
    {"average", RMS, "sgd.local_state=average"},
    {"average", "compress.code=topk", EMA, WARM},
    {"average", MUON, KEEP},
    {"bmuf", EMA},
    {"bmuf", "job.sum=ring", KEEP},
    {"bmuf", "job.sum=halving", "sgd.local_state=average", WARM},
    {"bmuf", "job.sum=hier", "job.topology=5x1", EMA},
    {"bmuf", ADAM, "sgd.local_state=extrapolate", "compress.code=int8", EMA},
    {"bmuf", WARM, "ssgd.overlap=bucket", "ssgd.bucket=0.004", ADAM, KEEP},
    {"bmuf", "bmuf.momentum=0.5@0 0.9@0.5 auto@1", "bmuf.rate=1@0 0.5@1", EMA},
    {"bmuf", "bmuf.momentum=0.9@0 0.3@1", "compress.code=int8", ADAM,
     "sgd.local_state=extrapolate"},
    {"bmuf", "bmuf.time_constant=2000", "job.sum=ring", KEEP, WARM},
    {"bmuf", "bmuf.time_constant=9000", "block.fragments=2",
     "block.overlap=yes"},
    {"bmuf", "block.workers=1@0 5@1", "compress.code=onebit"},
    {"bmuf", RMS, KEEP, EMA},
    {"bmuf", MUON, "sgd.local_state=average", WARM},
    {"slowmo", EMA},
    {"slowmo", "job.sum=ring", KEEP},
    {"slowmo", "compress.code=onebit", WARM, KEEP},
    {"slowmo", "block.fragments=2", "block.overlap=yes", WARM},
    {"diloco", ADAM, KEEP, "diloco.outer_momentum=0.9@0 0.5@0.7"},
    {"diloco", ADAM, KEEP, "block.fragments=3", EMA},
    {"diloco", ADAM, KEEP, "compress.code=bf16"},
    {"lookahead"},
    {"lookahead", "block.overlap=yes", KEEP},
    {"cntk", "cntk.nesterov=yes", EMA},
    {"cntk", "cntk.nesterov=no", "block.overlap=yes"},
    {"fairseq", "fairseq.use_nbm=yes", KEEP},
    {"fairseq", "sgd.local_state=average", "compress.code=fp16"},
    {"pika", ADAM, "sgd.local_state=extrapolate", WARM},
    {"ssgd", EMA, "job.coordinator=root"},
    {"ssgd", ADAM, "ssgd.overlap=layer", "job.sum=exact"},
    {"ssgd", "sgd.momentum=0.5", "job.sum=hier", "job.topology=5"},
    {"ssgd", MUON, EMA},
    {"onebit", EMA, ADAM},
    {"onebit", WARM, "job.coordinator=root", "sgd.momentum=0.5"},
    {"asgd", EMA, "sgd.momentum=0.5", "asgd.scaling=inverse"},
    {"asgd", ADAM, WARM, "asgd.push_every=2", "asgd.fetch_every=2"},
    {"asgd", ADAM, KEEP, EMA, "asgd.update=local", "asgd.push_every=2",
     "asgd.fetch_every=4"},
    {"asgd", MUON},
    {"softsync", EMA, WARM, "softsync.n=2", "softsync.scaling=inverse"},
    {"softsync", ADAM, "clock.times=1 2 3 1 2", "softsync.n=3"},
    {"easgd", EMA, "sgd.momentum=0.5", "clock.times=1 1 1 1 4"},
    {"easgd", ADAM, WARM, "easgd.period=2", "job.coordinator=root"},
};

enum { MOST = sizeof methods[0] / sizeof methods[0][0] };

/* "train.strategy=<name>" and its settings, ending with NULL. Rank 0 prints them:
 * the last ones are those of an assertion that fails. */
static const char *const *settings_of(const char *const *method)
{
    enum { OURS = 3 };
    static char strategy[40];
    static const char *all[OURS + MOST] = {strategy, STEADY,
                                           "sgd.momentum=0.25"};

    snprintf(strategy, sizeof strategy, "train.strategy=%s", method[0]);
    for (size_t i = 1; i < MOST; i++)
        all[OURS + i - 1] = method[i];
    for (size_t i = 0; all[i] != NULL; i++)
        print_message("%s%s", i > 0 ? " " : "", all[i]);
    print_message("\n");
    return all;
}

/* `local` has one worker, and so runs on one rank. */
static problem problem_of(const char *const *method)
{
    problem p = ragged;

    p.cooling = true;
    for (size_t i = 1; i < MOST && method[i] != NULL; i++)
        p.layered = p.layered || strcmp(method[i], MUON) == 0;
    if (strcmp(method[0], "local") == 0) {
        p.workers = 1;
        p.ragged = false; /* or a block would be empty */
    }
    return p;
}

static void test_every_strategy_is_in_the_table(void **state)
{
    const bm_strategy_ops *const *s = bm_strategy_list();

    (void)state;
    for (; *s != NULL; s++) {
        size_t rows = 0;

        FOR_EACH (k, methods)
            rows += strcmp(methods[k][0], (*s)->name) == 0;
        if (rows == 0)
            fail_msg("strategy '%s' has no row in `methods` of "
                     "tests/bmuf/test_methods.c; add one",
                     (*s)->name);
    }
}

static bool is_set(const char *const *method, const char *setting)
{
    for (size_t i = 1; i < MOST && method[i] != NULL; i++)
        if (strcmp(method[i], setting) == 0)
            return true;
    return false;
}

/* Momentum is the default. */
static void test_every_local_update_is_in_the_table(void **state)
{
    const bm_option *o = bm_sgd_options;
    char words[200], setting[64], *rest = words;

    (void)state;
    while (strcmp(o->key, "update") != 0)
        o++;
    snprintf(words, sizeof words, "%s", o->unit);
    for (const char *word = NULL;
         (word = strtok_r(rest, " ", &rest)) != NULL;) {
        size_t rows = strcmp(word, "momentum") == 0;

        snprintf(setting, sizeof setting, "sgd.update=%s", word);
        FOR_EACH (k, methods)
            rows += is_set(methods[k], setting);
        if (rows == 0)
            fail_msg("sgd.update = %s has no row in `methods` of "
                     "tests/bmuf/test_methods.c; add one with "
                     "sgd.local_state=keep",
                     word);
    }
}

static void test_number_of_ranks_changes_no_bits(void **state)
{
    if (bm_comm_size(*state) == 1)
        skip(); /* it would compare a run with itself */
    FOR_EACH (k, methods) {
        problem p = problem_of(methods[k]);

        if (p.workers >= bm_comm_size(*state))
            assert_ranks_change_no_bits(*state, p, settings_of(methods[k]));
    }
}

/* Resuming on another number of ranks is tested with the program. */
static void test_halts_change_no_bits(void **state)
{
    bm_comm *one = NULL;

    assert_ok(bm_comm_open_alone(&one));
    FOR_EACH (k, methods) {
        problem p = problem_of(methods[k]);
        bm_comm *comm = p.workers < bm_comm_size(*state) ? one : *state;

        assert_halts_change_no_bits(comm, p, settings_of(methods[k]));
    }
    bm_comm_close(one);
}

/* A mean or a filter, of which these are the equations with 5 workers. */
typedef struct equation {
    const char *method[4]; /* as above */
    double eta, zeta;
    double later; /* eta from epoch 1 on; 0: as before */
    bool nesterov;
    bool slowmo; /* Delta is -gamma u, u in units of gradients */
    bool equal;  /* workers with data weigh the same */
    bool keep;   /* local momentum */
    bool steps;  /* gradients are averaged, not models */
} equation;

static const equation equations[] = {
    {.method = {"local"}, .steps = true},
    {.method = {"ssgd"}, .steps = true},
    {.method = {"ssgd", "ssgd.overlap=layer"}, .steps = true},
    {.method = {"average", KEEP}, .zeta = 1, .keep = true},
    {.method = {"bmuf"}, /* auto, of five workers */
     .eta = 0.8,
     .zeta = 1,
     .nesterov = true},
    {.method = {"bmuf", "bmuf.momentum=0.8@0 0.4@1"},
     .eta = 0.8,
     .later = 0.4,
     .zeta = 1,
     .nesterov = true},
    {.method = {"bmuf", "bmuf.momentum=0.8@0 0.4@1", "compress.code=fp32"},
     .eta = 0.8,
     .later = 0.4,
     .zeta = 1,
     .nesterov = true},
    {.method = {"bmuf", "bmuf.momentum=0.2@0 0.7@1", "bmuf.nesterov=no"},
     .eta = 0.2,
     .later = 0.7,
     .zeta = 1},
    {.method = {"bmuf", "bmuf.time_constant=1200"}, /* blocks of 600 frames */
     .eta = 0.60653065971263342,                    /* 1 / sqrt(e) */
     .zeta = 1,
     .nesterov = true},
    {.method = {"bmuf", "bmuf.nesterov=no", "bmuf.rate=0.5", KEEP},
     .eta = 0.8,
     .zeta = 0.5,
     .keep = true},
    {.method = {"slowmo"}, .eta = 0.5, .zeta = 1, .slowmo = true},
    {.method = {"diloco", KEEP},
     .eta = 0.9,
     .zeta = 0.7,
     .nesterov = true,
     .keep = true},
    {.method = {"lookahead"}, .zeta = 0.5},
    {.method = {"cntk"}, .eta = 0.8, .zeta = 5 * 0.2 * 1.8, .equal = true},
    {.method = {"cntk", "cntk.nesterov=no"},
     .eta = 0.8,
     .zeta = 5 * 0.2,
     .equal = true},
    {.method = {"fairseq"}, .eta = 0.875, .zeta = 1, .equal = true},
    {.method = {"fairseq", "fairseq.use_nbm=yes"},
     .eta = 0.875,
     .zeta = 1.875,
     .equal = true},
    {.method = {"pika"}, .eta = 0.9, .zeta = 0.1 * 1.9, .equal = true},
};

/* All workers' models and momentum; of steps the first of them. */
typedef struct vectors {
    double v[WORKERS][N], start[N], model[N], delta[N]; /* slowmo: -u */
} vectors;

static void train_steps(const problem *p, int t, vectors *a)
{
    static double g[N], mean[N];
    bm_position at = position_of(t);
    double rate = rate_of(p, t), total = 1;

    for (int64_t step = 0; total > 0; step++) {
        total = 0;
        memset(mean, 0, sizeof mean);
        for (int k = 0; k < p->workers; k++) {
            double n = gradient_of(p, at, k, step, a->model, g);

            total += n;
            for (int i = 0; i < N; i++)
                mean[i] += n * g[i];
        }
        for (int i = 0; i < N && total > 0; i++) {
            a->v[0][i] = 0.25 * a->v[0][i] - rate * mean[i] / total;
            a->model[i] += a->v[0][i];
        }
    }
}

static double eta_of(const equation *e, int t)
{
    return t >= BLOCKS && e->later > 0 ? e->later : e->eta;
}

static void train_block(const equation *e, const problem *p, int t, vectors *a)
{
    static double w[N], mean[N];
    bm_position at = position_of(t);
    double total = 0;
    double gamma = e->slowmo ? rate_of(p, t) : 1;

    memset(mean, 0, sizeof mean);
    for (int k = 0; k < p->workers; k++) {
        double n = (double)share(p, at, k), weight = e->equal ? n > 0 : n;

        memcpy(w, a->start, sizeof w);
        if (!e->keep)
            memset(a->v[k], 0, sizeof a->v[k]);
        learn_share(p, at, k, 0.25, rate_of(p, t), w, a->v[k]);
        total += weight;
        for (int i = 0; i < N; i++)
            mean[i] += weight * (w[i] - a->start[i]);
    }
    for (int i = 0; i < N; i++) {
        a->delta[i] =
            eta_of(e, t) * a->delta[i] + e->zeta * mean[i] / total / gamma;
        a->model[i] += gamma * a->delta[i];
        a->start[i] =
            a->model[i] + (e->nesterov ? eta_of(e, t + 1) * a->delta[i] : 0);
    }
}

static void test_methods_follow_their_equations(void **state)
{
    static result got;
    static vectors a;

    FOR_EACH (k, equations) {
        const equation *e = &equations[k];
        const char *method[MOST] = {e->method[0], e->method[1], e->method[2],
                                    e->method[3]};
        problem p = problem_of(method);

        if (p.workers < bm_comm_size(*state))
            continue;
        run_job(*state, p, settings_of(method), &got);
        memset(&a, 0, sizeof a);
        for (int t = 0; t < EPOCHS * BLOCKS; t++)
            if (e->steps)
                train_steps(&p, t, &a);
            else
                train_block(e, &p, t, &a);
        for (int i = 0; i < N; i++)
            assert_true(near(got.model[i], a.model[i], 5e-6));
    }
}

/* The middle layer is frozen, the first has a rate of its own. */
static void start_frozen(job *j)
{
    for (size_t i = 0; i < N; i++)
        j->params.w[i] = (float)truth(i + 5);
    start_job(j);
}

/* Whether these elements of the model, and of the average, are those of the
 * start, bit for bit. */
static bool stays(const float *x, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (x[i] != (float)truth(i + 5))
            return false;
    return true;
}

static void test_frozen_layers_keep_their_bits(void **state)
{
    static result got;

    FOR_EACH (k, methods) {
        problem p = problem_of(methods[k]);
        job j;

        if (p.workers < bm_comm_size(*state))
            continue;
        p.layered = true;
        j = open_job(*state, p, settings_of(methods[k]));
        assert_ok(bm_config_set(j.config, "train.freeze=*.blstm"));
        assert_ok(bm_config_set(j.config, "train.rates=0.linear:0.5"));
        assert_ok(bm_config_set(j.config, "sgd.weight_decay=0.01"));
        assert_ok(bm_config_set(j.config, "train.ema=0.7"));
        if (strcmp(bm_config_text(j.config, "compress", "code") != NULL
                       ? bm_config_text(j.config, "compress", "code")
                       : "",
                   "onebit") == 0) { /* settings.c refuses it */
            close_job(&j);
            continue;
        }
        memset(&got, 0, sizeof got);
        start_frozen(&j);
        run_blocks(&j, 0, EPOCHS * BLOCKS, &got);
        assert_true(stays(got.model, 700, 1701));
        assert_false(stays(got.model, 0, 700));
        assert_false(stays(got.model, 1701, N));
        if (bm_trainer_has_ema(j.trainer))
            assert_true(stays(got.ema, 700, 1701));
        close_job(&j);
        assert_int_equal(j.params.n_layer_rates, 0);
    }
}

/* Of 69 characters; it fits "1.blstm". */
#define TEN  "0123456789"
#define WIDE "1.[" TEN TEN TEN TEN TEN TEN "b]lstm"

static void test_layers_that_do_not_exist_are_listed(void **state)
{
    static const struct {
        const char *setting, *says;
    } cases[] = {
        {"train.freeze=2.*",
         "no layer fits '2.*'; the layers with weights are: 0.linear 1.blstm "
         "3.linear"},
        {"train.freeze=*", "no layer is left to learn"},
        {"train.rates=7.conv:2", "train.rates: no layer fits '7.conv'"},
        {"train.rates=1.blstm", "'1.blstm' is not LAYER:FACTOR"},
        {"train.rates=1.blstm:0", "is not LAYER:FACTOR"},
        {"train.rates=1.blstm:x", "is not LAYER:FACTOR"},
        {"train.rates=" WIDE ":0.5", "has 73 characters, at most 63 are"},
        {"train.freeze=0.linear " WIDE, "train.freeze: '1.[0123"},
    };

    FOR_EACH (k, cases) {
        bm_params p = {.n = N,
                       .n_learned = N,
                       .segments = problem_layers,
                       .n_segments = PROBLEM_LAYERS};
        bm_layer_rates layer_rates = {0};
        bool rates = strncmp(cases[k].setting, "train.rates=", 12) == 0;
        const char *value = strchr(cases[k].setting, '=') + 1;

        assert_int_equal(bm_layer_rates_read(&layer_rates, &p,
                                             rates ? "" : value,
                                             rates ? value : ""),
                         BM_ERR_CONFIG);
        assert_non_null(strstr(bm_last_error(), cases[k].says));
    }
    (void)state;
}

/* What explain prints of a checkpoint, without opening a trainer. */
static void test_footprint_counts_the_states(void **state)
{
    enum { SHORT = 100 }; /* counts and rates, not vectors */
    bm_comm *one = NULL;

    (void)state;
    assert_ok(bm_comm_open_alone(&one));
    FOR_EACH (k, methods) {
        job j = open_job(one, problem_of(methods[k]), settings_of(methods[k]));
        bm_state *states = NULL;
        bm_footprint size = {0};
        size_t room = 0, n = 0, floats = 0;

        start_job(&j);
        assert_ok(bm_trainer_seek(j.trainer, 2)); /* past the warm-up */
        room = bm_trainer_states(j.trainer);
        states = calloc(room, sizeof *states);
        assert_non_null(states);
        n = bm_trainer_state(j.trainer, states, room);
        for (size_t i = 0; i < n; i++)
            floats += states[i].count > SHORT ? states[i].count : 0;
        assert_ok(bm_trainer_footprint(j.config, 1, &size));
        assert_true(near((double)floats / N, size.checkpoint, 1e-9));
        assert_true(size.memory > size.checkpoint);
        free(states);
        close_job(&j);
    }
    bm_comm_close(one);
}

/* Vectors as long as the model that a parameter server adds to a rank: a message,
 * and of its shard W, the sum of waiting pushes, the last push, the momentum; and
 * those of an exchange, which is not opened then. */
static void test_footprint_counts_a_server(void **state)
{
    static const struct {
        const char *kind, *shards, *update;
        double vectors;
    } rows[] = {
        {"clock.kind=virtual", "clock.shards=0", "sgd.update=momentum", 0},
        {"clock.kind=real", "clock.shards=1", "sgd.update=momentum", 1 + 4},
        {"clock.kind=real", "clock.shards=2", "sgd.update=momentum", 1 + 2},
        {"clock.kind=real", "clock.shards=0", "sgd.update=momentum", 1 + 1},
        {"clock.kind=real", "clock.shards=0", "sgd.update=adamw", 1 + 1.25},
        {"clock.kind=real", "clock.shards=0", "sgd.update=rmsprop", 1 + 1.25},
    };
    double exchange = 1 + bm_sum_traits_of("tree")->vectors(1);
    bm_footprint virtual = {0}, size = {0};

    (void)state;
    FOR_EACH (k, rows) {
        bm_config *config = set_all((const char *const[]){
            "train.strategy=asgd", "job.workers=4", rows[k].kind,
            rows[k].shards, rows[k].update, NULL});
        /* v, which is saved and copied */
        double of_update = strstr(rows[k].update, "momentum") == NULL ? 1 : 0;

        assert_ok(bm_trainer_footprint(config, 4, &size));
        if (k == 0)
            virtual = size;
        assert_true(near(size.memory - virtual.memory - 2 * of_update,
                         rows[k].vectors - (k > 0 ? exchange : 0), 1e-9));
        assert_true(
            near(size.checkpoint - of_update, virtual.checkpoint, 1e-9));
        bm_config_free(config);
    }
}

/* Of a late exchange of a device: a fragment beside the training. */
static void test_footprint_counts_the_room_of_a_late_exchange(void **state)
{
    static const char *const settings[] = {"job.device=cpu", "job.device=cuda",
                                           "job.exchange=host"};
    static const double more[] = {0, 0.25, 0};
    bm_config *config = NULL;
    double least = 0;

    (void)state;
    assert_ok(bm_config_new(&config));
    assert_ok(bm_config_set(config, "block.overlap=yes"));
    assert_ok(bm_config_set(config, "block.fragments=4"));
    FOR_EACH (i, settings) {
        bm_footprint size = {0};

        assert_ok(bm_config_set(config, settings[i]));
        assert_ok(bm_trainer_footprint(config, 1, &size));
        if (i == 0)
            least = size.memory;
        assert_true(near(size.memory, least + more[i], 1e-12));
    }
    bm_config_free(config);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_every_strategy_is_in_the_table),
        TEST(test_every_local_update_is_in_the_table),
        TEST(test_number_of_ranks_changes_no_bits),
        TEST(test_halts_change_no_bits),
        TEST(test_methods_follow_their_equations),
        TEST(test_frozen_layers_keep_their_bits),
        TEST(test_layers_that_do_not_exist_are_listed),
        TEST(test_footprint_counts_the_states),
        TEST(test_footprint_counts_a_server),
        TEST(test_footprint_counts_the_room_of_a_late_exchange),
    };
    return RUN_GROUP_MPI("methods", tests);
}
