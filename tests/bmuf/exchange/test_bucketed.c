/*
 * Gradients exchanged in buckets: the bits are those of one exchange, and buckets
 * are exchanged during the backward pass.
 */
#include "bmuf/exchange/bucketed.h"
#include "bmuf/trainer/trainer.h"
#include "core/trace/span.h"
#include "models/model.h"
#include "tests/support/reference/equations.h"
#include "tests/support/support.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- settings ------------------------------------------------------------ */

static void test_conflicting_settings_are_rejected(void **state)
{
    static const struct {
        const char *overlap, *sum, *device, *exchange, *why; /* NULL: taken */
    } cases[] = {
        {"merged", "tree", "auto", "auto", NULL},
        {"merged", "exact", "cpu", "host", NULL},
        {"bucket", "ring", "cpu", "auto", NULL},
        {"none", "ring", "cuda", "nccl", NULL},
        {"merged", "ring", "cpu", "auto", "job.sum = ring depend on the cut"},
        {"merged", "mpi", "cpu", "auto", "job.sum = mpi depend on the cut"},
        {"layer", "tree", "cuda", "auto", NULL},
        {"merged", "tree", "cuda", "auto",
         "merged measures the time of layers"},
        {"bucket", "tree", "auto", "nccl", "overlap = bucket sends buckets"},
        {"layer", "tree", "cuda", "mpi", "set job.exchange = host"},
    };

    (void)state;
    FOR_EACH (i, cases) {
        bm_bucketed_settings s = {cases[i].overlap, 25};
        bm_job what = {.sum = cases[i].sum,
                       .device = cases[i].device,
                       .exchange = cases[i].exchange};

        assert_int_equal(bm_bucketed_check(&s, &what),
                         cases[i].why == NULL ? BM_OK : BM_ERR_CONFIG);
        if (cases[i].why != NULL)
            assert_non_null(strstr(bm_last_message(), cases[i].why));
    }
}

/* ---- bits ---------------------------------------------------------------- */

#define SSGD "train.strategy=ssgd"

static const char *const overlaps[] = {
    "ssgd.overlap=layer", "ssgd.overlap=bucket", "ssgd.overlap=merged"};

/* A job of at most so many ranks as workers. */
static bm_comm *comm_of(bm_comm *all, bm_comm *one, int workers)
{
    return bm_comm_size(all) <= workers ? all : one;
}

static void test_buckets_change_no_bits(void **state)
{
    static const int workers[] = {1, 2, 4, 5};
    static const char *const sums[] = {"job.sum=tree", "job.sum=exact"};
    static const char *const where[] = {"job.coordinator=sharded",
                                        "job.coordinator=root"};
    static result expected, got;
    bm_comm *one = NULL;

    assert_ok(bm_comm_open_alone(&one));
    FOR_EACH (w, workers)
        FOR_EACH (m, sums) {
            bm_comm *comm = comm_of(*state, one, workers[w]);
            problem p = ragged;
            const char *settings[] = {SSGD,     "ssgd.overlap=none",
                                      sums[m],  "ssgd.bucket=0.004",
                                      where[m], STEADY,
                                      NULL};

            p.workers = workers[w];
            p.ragged = workers[w] > 1; /* or there are blocks without data */
            run_job(comm, p, settings, &expected);
            FOR_EACH (k, overlaps) {
                settings[1] = overlaps[k];
                run_job(comm, p, settings, &got);
                assert_memory_equal(&got, &expected, sizeof got);
            }
        }
    bm_comm_close(one);
}

/* If the order of a sum depends on the element, means agree up to rounding. */
static void test_other_sums_work_in_buckets(void **state)
{
    static const char *const sums[] = {"job.sum=mpi", "job.sum=ring"};
    static result expected, got;

    FOR_EACH (m, sums)
        FOR_EACH (k, overlaps) {
            const char *settings[] = {
                SSGD, sums[m], STEADY, "ssgd.overlap=none", "ssgd.bucket=0.004",
                NULL};

            if (strcmp(overlaps[k], "ssgd.overlap=merged") == 0)
                continue; /* refused */
            run_job(*state, even, settings, &expected);
            settings[3] = overlaps[k];
            run_job(*state, even, settings, &got);
            for (int i = 0; i < N; i++)
                assert_true(near(got.model[i], expected.model[i], 1e-6));
        }
}

/* All of it in double: one velocity, of the mean over workers. */
static void expect_ssgd(const problem *p, double mu, double *w)
{
    static double v[N], g[N];

    memset(w, 0, N * sizeof *w);
    memset(v, 0, sizeof v);
    for (int t = 0; t < EPOCHS * BLOCKS; t++)
        for (int64_t step = 0, n = 1; n > 0; step++) {
            bm_position at = {t / BLOCKS, t % BLOCKS};

            memset(g, 0, sizeof g);
            n = 0;
            for (int k = 0; k < p->workers; k++)
                for (int64_t j = 0; j < batch_size(p, at, k, step); j++, n++) {
                    sample s = sample_of(p, at, k, step, j);
                    double r = -s.y;

                    for (int i = 0; i < 4; i++)
                        r += s.a[i] * w[s.index[i]];
                    for (int i = 0; i < 4; i++)
                        g[s.index[i]] += r * s.a[i];
                }
            for (int i = 0; i < N && n > 0; i++) {
                v[i] = mu * v[i] - 0.25 * g[i] / (double)n;
                w[i] += v[i];
            }
        }
}

static void test_momentum_applies_to_the_summed_gradient(void **state)
{
    static const char *const ways[] = {"ssgd.overlap=none",
                                       "ssgd.overlap=layer"};
    static double expected[N];
    static result got;

    expect_ssgd(&ragged, 0.75, expected);
    FOR_EACH (k, ways) {
        const char *const settings[] = {SSGD, ways[k], "sgd.momentum=0.75",
                                        STEADY, NULL};

        run_job(*state, ragged, settings, &got);
        for (int i = 0; i < N; i++)
            assert_true(near(got.model[i], expected[i], 1e-6));
    }
}

/* ---- a network ----------------------------------------------------------- */

enum { FRAMES = 6, SEQUENCES = 3, FEATURES = 20, CLASSES = 30, STEPS = 8 };

/* Joined layers, statistics, a layer without weights; layers of many chunks
 * and of less than one. */
#define NET                                                                    \
    "linear:64 batchnorm relu linear:96 dropout:0.2 tanh blstm:24 batchnorm "  \
    "leaky_relu linear:80 linear"

typedef struct net {
    bm_backend *be;
    bm_model *model;
    bm_config *config; /* of a trainer */
    int first;
    double block;
} net;

static bm_status next_block(void *self, bm_position at, int64_t *steps)
{
    net *n = self;

    n->block = (double)at.block;
    *steps = at.block < 2 ? STEPS : 0;
    return BM_OK;
}

/* Worker 1 has no data in every third step. */
static bm_status net_gradient(void *self, bm_params *params, int worker,
                              int64_t step, double *samples)
{
    static const int32_t frames[SEQUENCES] = {FRAMES, FRAMES - 2, 1};
    static float x[FRAMES * SEQUENCES * FEATURES];
    static int32_t classes[FRAMES * SEQUENCES];
    net *n = self;
    bm_batch b = {.extent = {FRAMES, SEQUENCES, frames},
                  .targets = {classes, frames},
                  .x = {x, 3, {FRAMES, SEQUENCES, FEATURES, 1}}};
    bm_rng rng =
        bm_rng_make((uint64_t)(100 * step + worker), "net", (uint64_t)n->block);

    (void)params;
    *samples = 0;
    if (worker == 1 && step % 3 == 0)
        return BM_OK;
    for (int i = 0; i < FRAMES * SEQUENCES; i++) {
        bool inside = i / SEQUENCES < frames[i % SEQUENCES];

        for (int k = 0; k < FEATURES; k++)
            x[i * FEATURES + k] = inside ? (float)bm_rng_uniform(&rng) : 0;
        classes[i] = (int32_t)(bm_rng_uniform(&rng) * CLASSES);
    }
    *samples = FRAMES + FRAMES - 2 + 1;
    bm_model_gradient(n->model, &b, (uint64_t)step, worker - n->first);
    return BM_OK;
}

static bm_status net_score(void *self, int worker, bm_score *out,
                           double *batches)
{
    net *n = self;

    *batches = 0;
    return bm_model_score(n->model, worker - n->first, out);
}

static void open_net(net *n, bm_comm *comm, int workers)
{
    bm_model_settings settings = {NET, "cross_entropy", "skip"};
    bm_model_shape shape = {FEATURES, CLASSES, workers};

    *n = (net){.first = bm_comm_first(comm, workers, bm_comm_rank(comm))};
    assert_ok(bm_backend_open(&n->be, "cpu", 0));
    assert_ok(bm_model_new(&n->model, &settings, &shape, n->be, 3));
}

static void close_net(net *n)
{
    bm_config_free(n->config);
    bm_model_free(n->model);
    bm_backend_close(n->be);
}

static bm_trainer *open_trainer(net *n, bm_comm *comm, int workers,
                                const char *const *settings)
{
    bm_task task = {n,    next_block, net_gradient, net_score,
                    NULL, epoch_size, NULL,         NULL};
    bm_trainer *t = NULL;
    char text[40];

    assert_ok(bm_config_new(&n->config));
    snprintf(text, sizeof text, "job.workers=%d", workers);
    assert_ok(bm_config_set(n->config, text));
    for (; *settings != NULL; settings++)
        assert_ok(bm_config_set(n->config, *settings));
    assert_ok(
        bm_trainer_open(&t, n->config, comm, bm_model_params(n->model), &task));
    return t;
}

/* The weights after two blocks; n floats, to be freed. */
static float *train_net(bm_comm *comm, int workers, const char *overlap,
                        const char *sum, size_t *size)
{
    const char *const settings[] = {
        SSGD, STEADY, overlap, sum, "ssgd.bucket=0.02", NULL};
    net n;
    bm_trainer *t = NULL;
    float *w = NULL;

    open_net(&n, comm, workers);
    t = open_trainer(&n, comm, workers, settings);
    *size = bm_model_params(n.model)->n;
    w = zeros(*size, sizeof *w);
    for (int i = 0; i < 2; i++) {
        bm_block_report r;

        assert_ok(bm_trainer_block(t, 0.1, &r));
        assert_true(r.bad_steps == 0 && r.samples > 0);
    }
    assert_ok(bm_trainer_global(t, w));
    bm_trainer_close(t);
    close_net(&n);
    return w;
}

static void test_networks_have_the_same_bits(void **state)
{
    static const struct {
        int workers;
        const char *sum;
    } cases[] = {{2, "job.sum=tree"}, {5, "job.sum=exact"}};
    bm_comm *one = NULL;

    assert_ok(bm_comm_open_alone(&one));
    FOR_EACH (i, cases) {
        int workers = cases[i].workers;
        bm_comm *comm = comm_of(*state, one, workers);
        size_t n = 0;
        float *expected =
            train_net(one, workers, "ssgd.overlap=none", cases[i].sum, &n);

        FOR_EACH (k, overlaps) {
            float *got =
                train_net(comm, workers, overlaps[k], cases[i].sum, &n);
            assert_memory_equal(got, expected, n * sizeof *got);
            free(got);
        }
        free(expected);
    }
    bm_comm_close(one);
}

/* Whether ranks measure what an exchange costs so differently that rank 0 would join
 * all layers, and the others none. */
static struct {
    bool differ;
    int rank;
} lines;

/* bucketed.c calls this. */
void __wrap_bm_buckets_line(size_t n, const double *x, const double *t,
                            double *a, double *b);
void __real_bm_buckets_line(size_t n, const double *x, const double *t,
                            double *a, double *b);

void __wrap_bm_buckets_line(size_t n, const double *x, const double *t,
                            double *a, double *b)
{
    __real_bm_buckets_line(n, x, t, a, b);
    assert_true(*a >= 0 && *b >= 0);
    if (!lines.differ)
        return;
    *a = lines.rank == 0 ? 1e3 : 0;
    *b = 0;
}

/* Or else ranks would exchange other parts of the gradient with each other. */
static void test_all_ranks_cut_the_same_buckets(void **state)
{
    bm_comm *comm = *state, *one = NULL;
    int workers = bm_comm_size(comm);
    size_t n = 0;
    float *expected = NULL, *got = NULL;

    assert_ok(bm_comm_open_alone(&one));
    expected = train_net(one, workers, "ssgd.overlap=none", "job.sum=tree", &n);
    lines.rank = bm_comm_rank(comm);
    lines.differ = true;
    got = train_net(comm, workers, "ssgd.overlap=merged", "job.sum=tree", &n);
    lines.differ = false;
    assert_memory_equal(got, expected, n * sizeof *got);
    free(got);
    free(expected);
    bm_comm_close(one);
}

/* ---- when a range is ready ------------------------------------------------ */

typedef struct record {
    const bm_params *params;
    float *then; /* [n]: g when its range was ready */
    size_t calls;
} record;

static void keep(void *self, size_t range)
{
    record *r = self;
    const bm_params *p = r->params;
    bm_range of = p->ranges[range];

    assert_int_equal(range, r->calls++);
    memcpy(r->then + of.offset, p->g + of.offset, of.count * sizeof *p->g);
    if (r->calls == p->n_ranges)
        memcpy(r->then + p->n_learned, p->g + p->n_learned,
               (p->n - p->n_learned) * sizeof *p->g);
}

static void test_parts_are_final_when_ready_is_called(void **state)
{
    size_t end = 0;
    double samples = 0;
    record r = {0};
    bm_params *p = NULL;
    net n;

    open_net(&n, *state, bm_comm_size(*state));
    n.first = 0;
    p = bm_model_params(n.model);
    end = p->n_learned;
    assert_true(p->n > p->n_learned);
    for (size_t i = 0; i < p->n_ranges; i++) { /* from the end on */
        assert_true(p->ranges[i].count > 0);
        assert_int_equal(p->ranges[i].offset + p->ranges[i].count, end);
        end = p->ranges[i].offset;
    }
    assert_int_equal(end, 0);
    assert_true(p->n_ranges >= 5); /* the joined ones are one */
    r = (record){p, zeros(p->n, sizeof(float)), 0};
    for (size_t i = 0; i < p->n; i++)
        r.then[i] = NAN;
    p->ready = keep;
    p->ready_self = &r;
    assert_ok(net_gradient(&n, p, 0, 1, &samples));
    assert_int_equal(r.calls, p->n_ranges);
    assert_memory_equal(r.then, p->g, p->n * sizeof(float));
    free(r.then);
    close_net(&n);
}

/* ---- during the backward pass -------------------------------------------- */

/* The spans of a step. */
static struct {
    pthread_t computing;
    atomic_bool watching;
    atomic_int exchanges; /* done on another thread */
    double first;         /* when the first of them began */
    int passes, late;     /* backward passes that ended; before it began */
} seen;

static void begin(const char *name)
{
    (void)name;
}

static void end(const char *name, double began, double ended)
{
    if (!atomic_load(&seen.watching))
        return;
    if (!pthread_equal(pthread_self(), seen.computing)) {
        if (strcmp(name, "exchange") == 0 && atomic_load(&seen.exchanges) == 0)
            seen.first = began;
        atomic_fetch_add(&seen.exchanges, strcmp(name, "exchange") == 0);
    } else if (strcmp(name, "backward") == 0) {
        seen.passes++;
        seen.late += atomic_load(&seen.exchanges) == 0 || seen.first >= ended;
    }
}

static const bm_span_watcher watcher = {begin, end};

/* Between the trainer and its model: holds up the backward pass of layer 0
 * until the bucket of the last layer has been exchanged. */
static struct {
    void (*ready)(void *self, size_t range);
    void *self;
    size_t ranges;
} between;

static void hold_up(void *self, size_t range)
{
    (void)self;
    if (range == 0)
        atomic_store(&seen.exchanges, 0);
    between.ready(between.self, range);
    while (range + 2 == between.ranges && atomic_load(&seen.exchanges) == 0)
        sched_yield(); /* or the test times out */
}

/* The exchange of the last layer begins, and even ends, before the backward
 * pass of the first one ends: on all ranks, in every step. */
static void test_exchanges_start_before_the_backward_pass_ends(void **state)
{
    static const char *const settings[] = {SSGD, STEADY, "ssgd.overlap=layer",
                                           NULL};
    int size = bm_comm_size(*state);
    bm_trainer *t = NULL;
    bm_params *p = NULL;
    bm_block_report r;
    net n;

    open_net(&n, *state, size);
    t = open_trainer(&n, *state, size, settings);
    p = bm_model_params(n.model);
    between.ready = p->ready;
    between.self = p->ready_self;
    between.ranges = p->n_ranges;
    p->ready = hold_up;
    seen.passes = seen.late = 0;
    seen.computing = pthread_self();
    bm_span_watch(&watcher);
    atomic_store(&seen.watching, true);
    assert_ok(bm_trainer_block(t, 0.1, &r));
    atomic_store(&seen.watching, false);
    assert_true(seen.passes >= STEPS - (STEPS + 2) / 3);
    assert_int_equal(seen.late, 0);
    p->ready = between.ready;
    bm_trainer_close(t);
    assert_null(p->ready);
    close_net(&n);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_conflicting_settings_are_rejected),
        TEST(test_buckets_change_no_bits),
        TEST(test_other_sums_work_in_buckets),
        TEST(test_momentum_applies_to_the_summed_gradient),
        TEST(test_networks_have_the_same_bits),
        TEST(test_all_ranks_cut_the_same_buckets),
        TEST(test_parts_are_final_when_ready_is_called),
        TEST(test_exchanges_start_before_the_backward_pass_ends),
    };
    return RUN_GROUP_MPI("overlap", tests);
}
