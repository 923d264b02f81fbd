/*
 * The exchange gives the same bits by way of the host and from device to device,
 * on any number of ranks, as on the CPU. test_bmuf.c compares the CPU with the
 * equations.
 */
#include "bmuf/strategies/fragments.h"
#include "bmuf/strategy.h"
#include "bmuf/trainer/ema.h"
#include "compute/backend_ops.h"
#include "compute/device_comm.h"
#include "tests/support/comms.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 5003, LEARNED = 3100, BLOCKS = 6, STATES = 80 };

static const char *backend = "cpu";

/* [compress] code of the jobs that run now; NULL: none. */
static const char *code;

/* [job] topology, likewise. */
static const char *topology = "auto";

/* Settings of [block] of the jobs that run now, which end with NULL; NULL: models
 * are exchanged whole, at block ends. */
static const char *const *blocks;
static int shown; /* a worker that is hosted here: its model is compared */

/* The results of a run: start, global model and a mean of each block. Where
 * workers have models of their own, that of worker `shown` is in `start`. */
typedef struct outcome {
    float start[BLOCKS][N], global[BLOCKS][N], mean[BLOCKS][N];
    bm_update update[BLOCKS];
} outcome;

typedef struct job {
    bm_comm *comm;
    bm_backend *be;
    const char *strategy, *exchange, *coordinator, *sum;
    int workers;
} job;

typedef struct rig {
    const job *of;
    bm_config *config;
    bm_params params;
    bm_strategy *strategy;
    int first, last; /* workers */
} rig;

static float noise(int worker, int block, int i)
{
    unsigned x = (unsigned)(worker * 7919 + block * 104729 + i) * 2654435761u;

    x ^= x >> 15;
    x *= 2246822519u;
    return ldexpf((float)(x >> 8) - (1 << 23), -27 + (int)(x % 7));
}

/* Some workers have no data, in one block none has, and some diverge. */
static double samples(int worker, int block)
{
    return block == 2 || (worker == 2 && block % 2 == 1) || worker == 5
               ? 0
               : 10 + 3 * worker;
}

static bool breaks(const job *j, int worker, int block)
{
    return j->workers > 1 && worker == 1 && block == 3;
}

static void set(bm_config *config, const char *key, const char *value)
{
    char text[128];

    snprintf(text, sizeof text, "%s=%s", key, value);
    assert_ok(bm_config_set(config, text));
}

/* Columns of codes: of a matrix, of a convolution, and some too short for a
 * code. */
static const bm_segment segments[] = {
    {.name = "0.w", .offset = 0, .count = 2000, .rank = 2, .dim = {20, 100}},
    {.name = "1.w",
     .offset = 2000,
     .count = 1098,
     .rank = 4,
     .dim = {3, 3, 2, 61}},
    {.name = "1.b", .offset = 3098, .count = 2, .rank = 1, .dim = {2}},
    {.name = "2.mean", .offset = 3100, .count = 1903, .rank = 1, .dim = {1903}},
};

static bm_status open_strategy(rig *r)
{
    float w[N];

    for (int i = 0; i < N; i++)
        w[i] = noise(99, 99, i);
    bm_put(r->params.be, r->params.w, w, N);
    if (blocks != NULL)
        return bm_fragments_open(&r->strategy, r->of->strategy, r->config,
                                 r->of->comm, &r->params);
    return bm_strategy_open(&r->strategy, r->of->strategy, r->config,
                            r->of->comm, &r->params);
}

static void set_up(rig *r, const job *j)
{
    int rank = bm_comm_rank(j->comm);
    char workers[16];

    *r = (rig){.of = j, .params = {.be = j->be, .n = N, .n_learned = LEARNED}};
    snprintf(workers, sizeof workers, "%d", j->workers);
    assert_ok(bm_config_new(&r->config));
    set(r->config, "job.workers", workers);
    set(r->config, "job.exchange", j->exchange);
    set(r->config, "job.coordinator", j->coordinator);
    set(r->config, "job.sum", j->sum);
    set(r->config, "job.topology", topology);
    if (code != NULL) {
        set(r->config, "compress.code", code);
        r->params.segments = segments;
        r->params.n_segments = sizeof segments / sizeof *segments;
    }
    for (size_t i = 0; blocks != NULL && blocks[i] != NULL; i++)
        assert_ok(bm_config_set(r->config, blocks[i]));
    set(r->config, "bmuf.momentum",
        blocks != NULL ? "0.7" : "0.7@0 0.4@2 0.8@4");
    set(r->config, "bmuf.rate", "0.9");
    assert_ok(bm_alloc(j->be, N, &r->params.w));
    assert_ok(bm_alloc(j->be, N, &r->params.g));
    r->first = bm_comm_first(j->comm, j->workers, rank);
    r->last = bm_comm_first(j->comm, j->workers, rank + 1);
}

static void clear_up(rig *r)
{
    bm_strategy_close(r->strategy);
    bm_free(r->params.be, r->params.w);
    bm_free(r->params.be, r->params.g);
    bm_config_free(r->config);
}

static void get(bm_backend *be, const float *x, float *out)
{
    bm_get(be, out, x, N);
    assert_ok(bm_sync(be));
}

/* w or g of a worker at the end of its share. */
static void learn(const rig *r, int worker, int block)
{
    bool steps = r->strategy->ops->per == BM_STEP;
    float *at = steps ? r->params.g : r->params.w, x[N] = {0};

    if (!steps)
        get(r->params.be, at, x);
    for (int i = 0; i < N; i++)
        x[i] += noise(worker, block, i);
    if (breaks(r->of, worker, block))
        x[N - 1] = worker % 2 ? INFINITY : NAN;
    bm_put(r->params.be, at, x, N);
}

/* Waits for a late exchange. */
static void note_own_model(const rig *r, int block, outcome *out)
{
    bm_state of[STATES];
    size_t n = bm_strategy_state(r->strategy, of), i = 0;
    char name[16];

    snprintf(name, sizeof name, "own.%d", shown);
    while (i < n && strcmp(of[i].name, name) != 0)
        i++;
    assert_true(i < n);
    get(of[i].be, of[i].x, out->start[block]);
}

/* A block is an epoch. */
static bm_run_point run_point_of(const rig *r, int block)
{
    return (bm_run_point){.workers = r->of->workers, .epochs = block};
}

static void train_block(rig *r, int block, outcome *out)
{
    bm_strategy *s = r->strategy;
    bm_run_point at = run_point_of(r, block);
    bool steps = s->ops->per == BM_STEP;

    assert_ok(bm_strategy_update_settings(s, &at));
    bm_strategy_block(s, block, block < 2 ? 0.3 : 0.1); /* slowmo looks at it */
    for (int k = r->first; k < r->last; k++) {
        bool good = true, broken = breaks(r->of, k, block);

        if (!steps)
            bm_strategy_begin(s, k, NULL);
        learn(r, k, block);
        assert_ok(bm_strategy_worker_end(s, k, samples(k, block), &good));
        assert_int_equal(good, !broken);
    }
    assert_ok(bm_strategy_exchange(s));
    out->update[block] = s->update;
    if (steps && s->update.weight == 0)
        return; /* g is not used */
    if (blocks != NULL && block % 2 == 0)
        return; /* the exchange may run beside the next block */
    if (blocks != NULL)
        note_own_model(r, block, out);
    else
        get(r->params.be, steps ? r->params.g : r->params.w, out->start[block]);
    assert_ok(bm_strategy_global(s, r->params.g));
    get(r->params.be, r->params.g, out->global[block]);
}

/* As local state is averaged. */
static void average(rig *r, int block, float *out)
{
    float x[N];

    for (int k = r->first; k < r->last; k++) {
        bool good = false;

        for (int i = 0; i < N; i++)
            x[i] = noise(k, block + 50, i);
        bm_put(r->params.be, r->params.g, x, N);
        assert_ok(bm_exchange_add(r->strategy->exchange, k, r->params.g, NULL,
                                  samples(k, block), &good));
        assert_true(good);
    }
    assert_ok(bm_exchange_mean(r->strategy->exchange, r->params.g));
    get(r->params.be, r->params.g, out);
}

/* Closes the strategy after a block and resumes from its states. */
static void restart(rig *r, int block)
{
    bm_state of[STATES];
    size_t n = bm_strategy_state(r->strategy, of);
    bm_run_point before = run_point_of(r, block);
    float *kept[STATES];

    for (size_t i = 0; i < n; i++) {
        bm_backend *be = of[i].be != NULL ? of[i].be : cpu;
        kept[i] = fetch(be, of[i].x, of[i].count);
    }
    bm_strategy_close(r->strategy);
    assert_ok(open_strategy(r));
    assert_int_equal(bm_strategy_state(r->strategy, of), n);
    for (size_t i = 0; i < n; i++) {
        bm_put(of[i].be != NULL ? of[i].be : cpu, of[i].x, kept[i],
               of[i].count);
        free(kept[i]);
    }
    assert_ok(bm_strategy_resume(r->strategy, &before));
}

static outcome *run(const job *j, const char *transport)
{
    rig r;
    outcome *out = zeros(1, sizeof *out);

    set_up(&r, j);
    assert_ok(open_strategy(&r));
    assert_string_equal(bm_strategy_transport(r.strategy), transport);
    for (int t = 0; t < BLOCKS; t++) {
        train_block(&r, t, out);
        if (r.strategy->exchange != NULL && /* onebit has no means of models */
            strcmp(j->strategy, "onebit") != 0)
            average(&r, t, out->mean[t]);
        if (t == 3 && r.strategy->ops->per == BM_BLOCK)
            restart(&r, t);
    }
    clear_up(&r);
    return out;
}

static void assert_same(outcome *a, outcome *b)
{
    assert_memory_equal(a->start, b->start, sizeof a->start);
    assert_memory_equal(a->global, b->global, sizeof a->global);
    assert_memory_equal(a->mean, b->mean, sizeof a->mean);
    for (int t = 0; t < BLOCKS; t++) {
        const bm_update *u = &a->update[t], *v = &b->update[t];
        assert_memory_equal(&u->weight, &v->weight, sizeof u->weight);
        assert_true(u->g_norm == v->g_norm || isnan(u->g_norm + v->g_norm));
        assert_true(u->delta_norm == v->delta_norm ||
                    isnan(u->delta_norm + v->delta_norm));
        assert_true(u->cos == v->cos || isnan(u->cos + v->cos));
    }
    free(a);
    free(b);
}

typedef struct fixture {
    bm_comm *comm, *alone;
    bm_backend *be;
} fixture;

static int setup(void **state)
{
    static fixture f;

    assert_ok(bm_comm_open(&f.comm));
    assert_ok(bm_comm_open_alone(&f.alone));
    assert_ok(bm_backend_open(&f.be, backend, bm_comm_rank(f.comm)));
    (void)open_cpu(state);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;

    (void)close_cpu(state);
    bm_backend_close(f->be);
    bm_comm_close(f->alone);
    bm_comm_close(f->comm);
    return 0;
}

static const char *const strategies[] = {"bmuf", "slowmo", "average", "ssgd"};

/* With this number of workers; ranks may have different numbers of them. */
static void check_transports(fixture *f, const char *strategy,
                             const char *where, int workers)
{
    int size = bm_comm_size(f->comm);
    job j = {f->comm, cpu, strategy, "auto", where, "tree", workers};
    job host = j, device = j, alone = j;

    host.be = device.be = alone.be = f->be;
    host.exchange = "host";
    alone.comm = f->alone;
    assert_same(run(&j, "host"), run(&host, "host"));
    assert_same(run(&j, "host"), run(&device, size > 1 ? "nccl" : "device"));
    if (workers == 2 * size)
        assert_same(run(&j, "host"), run(&alone, "device"));
}

static void test_all_transports_give_the_same_bits(void **state)
{
    fixture *f = *state;
    int size = bm_comm_size(f->comm);

    FOR_EACH (s, strategies) {
        check_transports(f, strategies[s], "sharded", size);
        check_transports(f, strategies[s], "root", 2 * size);
        check_transports(f, strategies[s], "sharded", 3 * size - 1);
    }
}

/* Of the host; two workers a rank. */
static job usual_job(const fixture *f)
{
    return (job){f->comm,
                 cpu,
                 "bmuf",
                 "auto",
                 "sharded",
                 "tree",
                 2 * bm_comm_size(f->comm)};
}

/* One rank uses the code of several. */
static void test_one_rank_may_send_to_itself(void **state)
{
    fixture *f = *state;
    job j = {f->comm, cpu, "bmuf", "auto", "sharded", "tree", 3};
    job device = j;
    int64_t number = 0;

    if (bm_comm_size(f->comm) > 1 ||
        bm_device_comm_load(f->be, &number) != BM_OK)
        return;
    device.be = f->be;
    device.exchange = "nccl";
    assert_same(run(&j, "host"), run(&device, "nccl"));
}

/* As block.fragments has them: an exchange for each fragment, on one device. */
static void test_exchanges_share_a_communicator(void **state)
{
    fixture *f = *state;
    job j = {f->comm, cpu, "bmuf", "auto", "sharded", "tree", 4}, device = j;
    int64_t number = 0;
    outcome *first = zeros(1, sizeof *first), *second = zeros(1, sizeof *first);
    rig a, b;

    device.be = f->be;
    device.exchange = "nccl";
    if (bm_device_comm_load(f->be, &number) == BM_OK) {
        set_up(&a, &device);
        set_up(&b, &device);
        assert_ok(open_strategy(&a));
        assert_ok(open_strategy(&b));
        for (int t = 0; t < BLOCKS; t++) {
            train_block(&a, t, first);
            average(&a, t, first->mean[t]);
            train_block(&b, t, second);
            average(&b, t, second->mean[t]);
            if (t == 3)
                restart(&a, t);
        }
        clear_up(&a);
        average(&b, BLOCKS - 1, second->mean[BLOCKS - 1]);
        clear_up(&b);
        assert_same(run(&j, "host"), first);
        assert_same(run(&j, "host"), second);
    } else {
        free(first);
        free(second);
    }
}

/* An emulated device has the host's memory, and runs when it is waited for. */
static bool is_emulated(const bm_backend *be)
{
    return strstr(bm_backend_about(be), "emulation") != NULL;
}

/* An emulated device whose memory any MPI can send: the host may touch it at any
 * time. */
static bool is_open_to_mpi(const bm_backend *be)
{
    return is_emulated(be) && getenv("BMUF_EMULATED_SHUT") == NULL;
}

static void test_cuda_aware_mpi_gives_the_same_bits(void **state)
{
    fixture *f = *state;
    int size = bm_comm_size(f->comm);

    if (!bm_on_host(f->be) && !is_open_to_mpi(f->be))
        return;
    pretend_cuda_aware(f->comm, true);
    for (int steps = 0; steps < 2; steps++) {
        job j = {f->comm, cpu, "bmuf", "auto", "sharded", "tree", 3 * size - 1};
        job device = j;

        if (steps)
            j.strategy = device.strategy = "ssgd";
        device.be = f->be;
        device.exchange = "mpi";
        device.coordinator = steps ? "root" : "sharded";
        assert_same(run(&j, "host"), run(&device, "mpi"));
    }
    pretend_cuda_aware(f->comm, false);
}

static void test_mpi_that_is_not_cuda_aware_is_rejected(void **state)
{
    fixture *f = *state;
    job j = {f->comm,
             f->be,
             "bmuf",
             "mpi",
             "sharded",
             "tree",
             bm_comm_size(f->comm)};
    rig r;

    if (bm_comm_takes_devices(f->comm))
        return; /* a library of this machine does */
    set_up(&r, &j);
    assert_int_equal(open_strategy(&r), BM_ERR_UNSUPPORTED);
    assert_non_null(
        strstr(bm_last_error(), "job.exchange = mpi is not available"));
    assert_non_null(strstr(bm_last_error(), "not CUDA-aware"));
    clear_up(&r);
}

static void test_exact_and_mpi_sums_use_the_host(void **state)
{
    static const char *const sums[] = {"exact", "mpi"};
    fixture *f = *state;

    FOR_EACH (i, sums) {
        job j = {f->comm,
                 cpu,
                 "bmuf",
                 "auto",
                 "sharded",
                 sums[i],
                 2 * bm_comm_size(f->comm)};
        job device = j;

        device.be = f->be;
        assert_same(run(&j, "host"), run(&device, "host"));
    }
}

/* Along a grid of workers: on devices that send to each other, and on one that
 * has all workers. */
static void check_along_a_grid(fixture *f, const char *sum, int workers)
{
    int size = bm_comm_size(f->comm);
    job j = {f->comm,
             cpu,
             workers % 2 ? "bmuf" : "average",
             "auto",
             workers % 3 ? "sharded" : "root",
             sum,
             workers};
    job device = j, alone = j;

    device.be = alone.be = f->be;
    alone.comm = f->alone;
    if (workers < 7)
        assert_same(run(&j, "host"),
                    run(&device, size > 1 ? "nccl" : "device"));
    else
        assert_same(run(&device, size > 1 ? "nccl" : "device"),
                    run(&alone, "device"));
}

static void test_sums_along_a_grid_have_the_bits_of_the_host(void **state)
{
    fixture *f = *state;

    check_along_a_grid(f, "ring", 5);
    check_along_a_grid(f, "ring", 7);
    check_along_a_grid(f, "halving", 6);
    topology = "2x3";
    check_along_a_grid(f, "hier", 6);
    topology = "auto";
    check_along_a_grid(f, "hier", bm_comm_size(f->comm));
}

/* What a device encodes and decodes is what the host does. Means go by the
 * host. */
static void test_codes_have_the_bits_of_the_host(void **state)
{
    static const char *const codes[] = {
#define X(name) #name,
        BM_CODES(X)
#undef X
    };
    fixture *f = *state;
    int size = bm_comm_size(f->comm);

    FOR_EACH (i, codes) {
        job j = {f->comm,
                 cpu,
                 "bmuf",
                 "auto",
                 "sharded",
                 "tree",
                 2 * size + (i % 2 ? 0 : 1)};
        job device = j;

        device.be = f->be;
        if (i % 3 == 0)
            j.strategy = device.strategy = "average";
        code = codes[i];
        assert_same(run(&j, "host"), run(&device, "host"));
        code = NULL;
    }
}

static void
test_a_device_without_the_code_has_the_bits_of_the_host(void **state)
{
    fixture *f = *state;
    const bm_backend_ops *whole = f->be->ops;
    bm_backend_ops without = *whole;
    job j = usual_job(f), device = j;

    without.device_code = NULL;
    f->be->ops = &without;
    device.be = f->be;
    code = "int8";
    assert_same(run(&j, "host"), run(&device, "host"));
    code = NULL;
    f->be->ops = whole;
}

/* Gradients: residuals in both directions. */
static void test_onebit_has_the_bits_of_the_host(void **state)
{
    fixture *f = *state;
    int size = bm_comm_size(f->comm);
    job j = {f->comm, cpu, "onebit", "auto", "root", "tree", 2 * size};
    job device = j;

    device.be = f->be;
    assert_same(run(&j, "host"), run(&device, "host"));
}

/* ---- late exchanges ------------------------------------------------------ */

static const char *const late[] = {"block.overlap=yes", NULL};
static const char *const in_turn[] = {"block.fragments=3", NULL};
static const char *const late_in_turn[] = {"block.overlap=yes",
                                           "block.fragments=3", NULL};

/* Of devices, by way of the host, and on the CPU. */
static void check_late(fixture *f, const char *strategy, const char *sum,
                       int workers)
{
    int size = bm_comm_size(f->comm);
    const char *way = strcmp(sum, "exact") == 0 ? "host"
                      : size > 1                ? "nccl"
                                                : "device";
    job j = {f->comm, cpu, strategy, "auto", "sharded", sum, workers};
    job host = j, device = j, alone = j;

    shown = bm_comm_first(f->comm, workers, bm_comm_rank(f->comm));
    host.be = device.be = alone.be = f->be;
    host.exchange = "host";
    alone.comm = f->alone;
    assert_same(run(&j, "host"), run(&host, "host"));
    assert_same(run(&j, "host"), run(&device, way));
    if (strcmp(sum, "tree") == 0 && workers == 2 * size)
        assert_same(run(&j, "host"), run(&alone, "device"));
}

static void test_late_exchanges_have_the_bits_of_the_host(void **state)
{
    static const char *const *const ways[] = {late, in_turn, late_in_turn};
    fixture *f = *state;
    int size = bm_comm_size(f->comm);

    FOR_EACH (i, ways) {
        blocks = ways[i];
        check_late(f, "bmuf", "tree", 2 * size);
        check_late(f, "average", "tree", 3 * size - 1);
    }
    blocks = late_in_turn;
    check_late(f, "slowmo", "tree", size);
    check_late(f, "bmuf", "ring", 5);
    check_late(f, "bmuf", "exact", 2 * size);
    blocks = NULL;
}

/* An average of models is on the backend of the exchange that is under way. */
static void close_during_an_exchange(const job *j)
{
    outcome *out = zeros(1, sizeof *out);
    bm_ema *ema = NULL;
    rig r;

    set_up(&r, j);
    assert_ok(open_strategy(&r));
    assert_ok(bm_ema_open(&ema, r.strategy, 0.5));
    train_block(&r, 0, out);
    bm_ema_close(ema);
    clear_up(&r);
    free(out);
}

/* By NCCL on one rank, and by a CUDA-aware MPI. */
static void test_late_exchanges_go_the_way_that_is_set(void **state)
{
    fixture *f = *state;
    int size = bm_comm_size(f->comm);
    job j = {f->comm, cpu, "bmuf", "auto", "sharded", "tree", 2 * size};
    job nccl = j, mpi = j;

    nccl.be = mpi.be = f->be;
    nccl.exchange = "nccl";
    mpi.exchange = "mpi";
    blocks = late_in_turn;
    shown = 2 * bm_comm_rank(f->comm);
    assert_same(run(&j, "host"), run(&nccl, "nccl"));
    close_during_an_exchange(&nccl);
    if (is_open_to_mpi(f->be)) {
        pretend_cuda_aware(f->comm, true);
        assert_same(run(&j, "host"), run(&mpi, "mpi"));
        pretend_cuda_aware(f->comm, false);
    }
    blocks = NULL;
}

static void check_falls_back(fixture *f, bm_backend *be, const char *why)
{
    job j = usual_job(f), device = j, named = j;
    rig r;

    device.be = named.be = be;
    named.exchange = "nccl";
    assert_same(run(&j, "host"), run(&device, "host"));
    set_up(&r, &named);
    assert_int_not_equal(open_strategy(&r), BM_OK);
    assert_non_null(strstr(bm_last_error(), "job.exchange"));
    assert_non_null(strstr(bm_last_error(), why));
    assert_null(r.strategy);
    clear_up(&r);
}

static void test_if_one_rank_lacks_nccl_all_use_the_host(void **state)
{
    fixture *f = *state;
    const bm_backend_ops *ops = f->be->ops;
    bm_backend_ops without = *ops;
    int size = bm_comm_size(f->comm);

    without.device_comm = NULL;
    if (size == 1)
        return;
    if (bm_comm_rank(f->comm) == size - 1)
        f->be->ops = &without;
    check_falls_back(f, f->be, "has no communication between devices");
    f->be->ops = ops;
}

static void test_ranks_that_share_a_device_use_the_host(void **state)
{
    fixture *f = *state;
    bm_backend *shared = NULL;

    if (bm_comm_size(f->comm) == 1)
        return;
    assert_ok(bm_backend_open(&shared, backend, 0));
    check_falls_back(f, shared, "ranks 0 and 1 share a device");
    bm_backend_close(shared);
}

/* ---- a rank that fails ----------------------------------------------------
 */

static void break_down(bm_backend *be)
{
    bm_remember(be, BM_FAIL(BM_ERR_DEVICE, "this one broke"));
}

static bm_status fail_to_open(bm_backend *be, const bm_device_comm_id *name,
                              int rank, int size, bm_device_comm_watch watch)
{
    (void)be, (void)name, (void)rank, (void)size, (void)watch;
    return BM_FAIL(BM_ERR_DEVICE, "this one broke");
}

static void fail_to_filter(bm_backend *be, const bm_filter_step *step, size_t n,
                           const float *g, float *y, double *products)
{
    (void)step, (void)n, (void)g, (void)y, (void)products;
    break_down(be);
}

/* Where the last rank fails: while the device communicator opens, before subtrees
 * are sent, or after that, when the others wait for its slice. */
enum { OPENING, SWAPPING, SHARING, PLACES };

static void check_failure(fixture *f, const char *exchange, int where)
{
    int rank = bm_comm_rank(f->comm), size = bm_comm_size(f->comm);
    bool mine = rank == size - 1;
    bm_backend *be = NULL;
    bm_backend_ops ops;
    bm_device_comm_ops device_comm;
    const bm_backend_ops *whole = NULL;
    job j = {f->comm, NULL, "bmuf", exchange, "sharded", "tree", size};
    rig r;
    bm_status status = BM_OK;

    assert_ok(bm_backend_open(&be, backend, rank));
    whole = be->ops;
    ops = *whole;
    device_comm = *ops.device_comm;
    ops.device_comm = &device_comm;
    if (where == OPENING)
        device_comm.open = fail_to_open;
    if (where == SHARING)
        ops.filter_slice = fail_to_filter;
    if (mine)
        be->ops = &ops;
    j.be = be;
    set_up(&r, &j);
    status = open_strategy(&r);
    assert_int_equal(status != BM_OK, where == OPENING);
    if (where != OPENING) {
        bool good = true;

        bm_strategy_begin(r.strategy, r.first, NULL);
        learn(&r, r.first, 0);
        assert_ok(bm_strategy_worker_end(r.strategy, r.first, 10, &good));
        if (mine && where == SWAPPING)
            break_down(be);
        status = bm_strategy_exchange(r.strategy);
    }
    assert_int_equal(status, BM_ERR_DEVICE); /* on all of them */
    assert_non_null(strstr(bm_last_error(), "this one broke"));
    if (!mine && size > 1) {
        char who[32];

        snprintf(who, sizeof who, "rank %d: ", size - 1);
        assert_non_null(strstr(bm_last_error(), who));
    }
    clear_up(&r);
    be->ops = whole;
    bm_backend_close(be);
}

/* A late exchange, or one of fragments, of which the last rank fails: on the
 * device's queue of the training when the exchange begins, or on that of the
 * exchange, while the others wait for its slice. */
static void check_late_failure(fixture *f, bool beside)
{
    int rank = bm_comm_rank(f->comm), size = bm_comm_size(f->comm);
    bool mine = rank == size - 1;
    bm_backend *be = NULL;
    bm_backend_ops ops;
    const bm_backend_ops *whole = NULL;
    job j = {f->comm, NULL, "bmuf", "nccl", "sharded", "tree", size};
    bool good = true;
    bm_status status = BM_OK;
    rig r;

    assert_ok(bm_backend_open(&be, backend, rank));
    whole = be->ops;
    ops = *whole;
    ops.filter_slice = fail_to_filter;
    if (mine && beside)
        be->ops = &ops;
    j.be = be;
    set_up(&r, &j);
    assert_ok(open_strategy(&r));
    bm_strategy_begin(r.strategy, rank, NULL);
    learn(&r, rank, 0);
    assert_ok(bm_strategy_worker_end(r.strategy, rank, 10, &good));
    if (mine && !beside)
        break_down(be);
    status = bm_strategy_exchange(r.strategy);
    if (r.strategy->late && !(mine && !beside)) {
        assert_ok(status); /* it is known when the exchange has ended */
        status = bm_strategy_global(r.strategy, r.params.g);
    }
    assert_int_equal(status, BM_ERR_DEVICE); /* on all of them */
    if (beside || mine)
        assert_non_null(strstr(bm_last_error(), "this one broke"));
    if (r.strategy->late)
        assert_int_equal(bm_strategy_exchange(r.strategy), BM_ERR_DEVICE);
    clear_up(&r);
    be->ops = whole;
    bm_backend_close(be);
}

static void test_a_late_exchange_that_fails_leaves_no_rank_waiting(void **state)
{
    static const char *const *const ways[] = {late, in_turn, late_in_turn};
    fixture *f = *state;
    int64_t number = 0;

    if (bm_device_comm_load(f->be, &number) != BM_OK)
        return;
    FOR_EACH (i, ways)
        for (int beside = 0; beside < 2; beside++) {
            blocks = ways[i];
            check_late_failure(f, beside);
        }
    check_late(f, "bmuf", "tree", 2 * bm_comm_size(f->comm));
    blocks = NULL;
}

static void test_a_rank_that_fails_leaves_no_rank_waiting(void **state)
{
    fixture *f = *state;
    int64_t number = 0;

    if (bm_device_comm_load(f->be, &number) != BM_OK)
        return;
    for (int where = 0; where < PLACES; where++)
        check_failure(f, "nccl", where);
    if (!is_open_to_mpi(f->be))
        return;
    pretend_cuda_aware(f->comm, true);
    check_failure(f, "mpi", SWAPPING);
    check_failure(f, "mpi", SHARING);
    pretend_cuda_aware(f->comm, false);
    /* later exchanges are not affected */
    check_transports(f, "bmuf", "sharded", bm_comm_size(f->comm));
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_all_transports_give_the_same_bits),
        TEST(test_one_rank_may_send_to_itself),
        TEST(test_exchanges_share_a_communicator),
        TEST(test_cuda_aware_mpi_gives_the_same_bits),
        TEST(test_mpi_that_is_not_cuda_aware_is_rejected),
        TEST(test_exact_and_mpi_sums_use_the_host),
        TEST(test_sums_along_a_grid_have_the_bits_of_the_host),
        TEST(test_codes_have_the_bits_of_the_host),
        TEST(test_a_device_without_the_code_has_the_bits_of_the_host),
        TEST(test_onebit_has_the_bits_of_the_host),
        TEST(test_if_one_rank_lacks_nccl_all_use_the_host),
        TEST(test_ranks_that_share_a_device_use_the_host),
        TEST(test_a_rank_that_fails_leaves_no_rank_waiting),
        TEST(test_late_exchanges_have_the_bits_of_the_host),
        TEST(test_late_exchanges_go_the_way_that_is_set),
        TEST(test_a_late_exchange_that_fails_leaves_no_rank_waiting),
    };

    if (argc > 1)
        backend = argv[1];
    if (!have_backend(backend))
        return SKIPPED;
    return RUN_GROUP_MPI("exchange", tests);
}
