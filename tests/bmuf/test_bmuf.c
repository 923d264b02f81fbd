/*
 * Strategies against their equations in double precision, on any number of
 * ranks. "Training" is a known drift of each worker's weights, so that all
 * expected numbers can be worked out by hand.
 */
#include "bmuf/filter.h"
#include "bmuf/strategy.h"
#include "bmuf/trainer/trainer.h"
#include "tests/support/fixture.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 3000, LEARNED = 1500, WORKERS = 5, BLOCKS = 6 };

static int setup(void **state)
{
    static fixture f;

    f = fixture_open(WORKERS, N);
    for (int i = 0; i < N; i++)
        f.params.w[i] = (float)(i % 100) / 64;
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture_close(*state);
    return 0;
}

/* What a worker adds to weight i in a block; different for each worker. */
static double drift(int worker, int block, int i)
{
    return 0.25 * (worker + 1) - 0.125 * block + 0.5 * (i % 7);
}

/* Worker 2 is without data in every other block. */
static double samples(int worker, int block)
{
    return worker == 2 && block % 2 == 1 ? 0 : 10 + worker;
}

static double mean_drift(int block, int i)
{
    double sum = 0, total = 0;

    for (int k = 0; k < WORKERS; k++) {
        sum += samples(k, block) * drift(k, block, i);
        total += samples(k, block);
    }
    return sum / total;
}

static bm_strategy *open_strategy(fixture *f, const char *name)
{
    bm_strategy *s = NULL;

    for (int i = 0; i < N; i++)
        f->params.w[i] = (float)(i % 100) / 64;
    assert_ok(bm_strategy_open(&s, name, f->config, f->comm, &f->params));
    return s;
}

/* A block of a BM_BLOCK strategy in which each worker drifts. */
static void train_block(fixture *f, bm_strategy *s, int block)
{
    int rank = bm_comm_rank(f->comm);
    int last = bm_comm_first(f->comm, WORKERS, rank + 1);

    for (int k = bm_comm_first(f->comm, WORKERS, rank); k < last; k++) {
        bool good = true;
        bm_strategy_begin(s, k, NULL);
        for (int i = 0; i < N; i++)
            f->params.w[i] += (float)drift(k, block, i);
        assert_ok(bm_strategy_worker_end(s, k, samples(k, block), &good));
        assert_true(good);
    }
    assert_ok(bm_strategy_exchange(s));
}

/* The mean over workers of the squared norm of what each has changed. */
static double mean_square(size_t n, int block)
{
    double sum = 0, weight = 0;

    for (int k = 0; k < WORKERS; k++) {
        double own = 0;

        for (size_t i = 0; i < n; i++)
            own += drift(k, block, (int)i) * drift(k, block, (int)i);
        sum += samples(k, block) * own;
        weight += samples(k, block);
    }
    return sum / weight;
}

/* The reported norms of G and Delta, n floats that are learned, and of workers'
 * changes. With averaging Delta is G and there is no cosine. */
static void check_update(const bm_update *u, size_t n, bool filtered,
                         const double *g, const double *delta, int block)
{
    double gg = 0, gd = 0, dd = 0;

    assert_true(near(u->worker_norm / sqrt(mean_square(n, block)), 1, 1e-5));
    for (size_t i = 0; i < n; i++) {
        gg += g[i] * g[i];
        gd += g[i] * delta[i];
        dd += delta[i] * delta[i];
    }
    assert_true(near(u->g_norm / sqrt(gg), 1, 1e-6));
    assert_true(near(u->delta_norm / sqrt(dd), 1, 1e-6));
    assert_true(filtered ? near(u->cos, gd / sqrt(gg * dd), 1e-6)
                         : isnan(u->cos));
}

/* Runs all blocks and compares with the filter's own recurrence; statistics
 * have neither momentum nor a rate. */
static void check_filter(fixture *f, const char *strategy, double eta,
                         double zeta, bool nesterov)
{
    bm_strategy *s = open_strategy(f, strategy);
    static double model[N], delta[N], g[N];
    float global[N], start_again[N];

    for (int i = 0; i < N; i++) {
        model[i] = (i % 100) / 64.0;
        delta[i] = 0;
    }
    for (int t = 0; t < BLOCKS; t++) {
        train_block(f, s, t);
        assert_ok(bm_strategy_global(s, global));
        for (int i = 0; i < N; i++) {
            bool learned = (size_t)i < f->params.n_learned;
            double start = 0;
            g[i] = mean_drift(t, i);
            delta[i] = learned ? eta * delta[i] + zeta * g[i] : g[i];
            model[i] += delta[i];
            start = model[i] + (nesterov && learned ? eta * delta[i] : 0);
            assert_true(near(f->params.w[i], start, 1e-6));
            assert_true(near(global[i], model[i], 1e-6));
        }
        check_update(&s->update, f->params.n_learned,
                     strcmp(strategy, "bmuf") == 0, g, delta, t);
    }
    memcpy(start_again, f->params.w, sizeof start_again);
    assert_ok(bm_strategy_resume(s, &(bm_run_point){.workers = WORKERS}));
    assert_memory_equal(f->params.w, start_again, sizeof start_again);
    bm_strategy_close(s);
}

static void test_classical_filter_follows_its_recurrence(void **state)
{
    fixture *f = *state;

    fixture_set(f, "bmuf.momentum=0.75");
    fixture_set(f, "bmuf.rate=0.5");
    fixture_set(f, "bmuf.nesterov=no");
    check_filter(f, "bmuf", 0.75, 0.5, false);
}

static void test_nesterov_filter_starts_ahead_of_the_model(void **state)
{
    fixture *f = *state;

    fixture_set(f, "bmuf.momentum=0.75");
    check_filter(f, "bmuf", 0.75, 1.0, true);
}

static void test_average_is_the_weighted_mean(void **state)
{
    check_filter(*state, "average", 0, 1, false);
}

static void test_statistics_become_the_plain_mean(void **state)
{
    fixture *f = *state;

    f->params.n_learned = LEARNED;
    check_filter(f, "average", 0, 1, false);
    fixture_set(f, "bmuf.momentum=0.75");
    fixture_set(f, "bmuf.rate=0.5");
    check_filter(f, "bmuf", 0.75, 0.5, true);
    fixture_set(f, "bmuf.nesterov=no");
    fixture_set(f, "job.coordinator=root");
    check_filter(f, "bmuf", 0.75, 0.5, false);
}

/* Start model and global model after all blocks, end to end. */
static void run(fixture *f, const char *strategy, float out[2 * N])
{
    bm_strategy *s = open_strategy(f, strategy);

    for (int t = 0; t < BLOCKS; t++)
        train_block(f, s, t);
    memcpy(out, f->params.w, N * sizeof *out);
    assert_ok(bm_strategy_global(s, out + N));
    bm_strategy_close(s);
}

static void test_filter_without_momentum_is_model_averaging(void **state)
{
    fixture *f = *state;
    float average[2 * N], filter[2 * N];

    run(f, "average", average);
    fixture_set(f, "bmuf.momentum=0");
    run(f, "bmuf", filter);
    assert_memory_equal(filter, average, sizeof average);
    fixture_set(f, "bmuf.nesterov=no");
    run(f, "bmuf", filter);
    assert_memory_equal(filter, average, sizeof average);
}

static void test_one_coordinator_gives_the_bits_of_many(void **state)
{
    static const char *const strategies[] = {"bmuf", "average"};
    static const char *const sums[] = {"job.sum=tree", "job.sum=exact"};
    fixture *f = *state;
    float sharded[2 * N], root[2 * N];

    for (int s = 0; s < 2; s++)
        for (int m = 0; m < 2; m++) {
            fixture_set(f, sums[m]);
            fixture_set(f, "job.coordinator=sharded");
            run(f, strategies[s], sharded);
            fixture_set(f, "job.coordinator=root");
            run(f, strategies[s], root);
            assert_memory_equal(sharded, root, sizeof root);
        }
}

static void test_number_of_ranks_changes_no_bits(void **state)
{
    static const char *const sums[] = {"job.sum=tree", "job.sum=exact"};
    fixture *f = *state;
    fixture alone = *f;
    float together[2 * N], by_myself[2 * N];

    if (bm_comm_size(f->comm) == 1)
        skip(); /* it would compare a run with itself */
    assert_ok(bm_comm_open_alone(&alone.comm));
    for (int m = 0; m < 2; m++) {
        fixture_set(f, sums[m]);
        f->params.n_learned = alone.params.n_learned = m == 0 ? N : LEARNED;
        run(f, "bmuf", together);
        run(&alone, "bmuf", by_myself);
        assert_memory_equal(together, by_myself, sizeof together);
    }
    bm_comm_close(alone.comm);
}

static void check_without_data(fixture *f, const char *strategy)
{
    bm_strategy *s = open_strategy(f, strategy);
    int rank = bm_comm_rank(f->comm);
    int last = bm_comm_first(f->comm, WORKERS, rank + 1);
    float before[N], after[N], start[N];

    train_block(f, s, 0);
    assert_ok(bm_strategy_global(s, before));
    memcpy(start, f->params.w, sizeof start);
    for (int k = bm_comm_first(f->comm, WORKERS, rank); k < last; k++) {
        bool good = true;
        bm_strategy_begin(s, k, NULL);
        assert_ok(bm_strategy_worker_end(s, k, 0, &good));
    }
    assert_ok(bm_strategy_exchange(s));
    assert_ok(bm_strategy_global(s, after));
    assert_memory_equal(after, before, sizeof after);
    assert_memory_equal(f->params.w, start, sizeof start);
    assert_true(s->update.weight == 0 && isnan(s->update.g_norm) &&
                isnan(s->update.delta_norm) && isnan(s->update.cos) &&
                isnan(s->update.worker_norm));
    bm_strategy_close(s);
}

static void test_block_without_data_changes_nothing(void **state)
{
    check_without_data(*state, "bmuf");
    check_without_data(*state, "average");
}

/* All workers add what the first one does. */
static void train_alike(fixture *f, bm_strategy *s, int block)
{
    int rank = bm_comm_rank(f->comm);
    int last = bm_comm_first(f->comm, WORKERS, rank + 1);

    for (int k = bm_comm_first(f->comm, WORKERS, rank); k < last; k++) {
        bool good = true;

        if (s->ops->per == BM_BLOCK)
            bm_strategy_begin(s, k, NULL);
        for (int i = 0; i < N; i++) {
            f->params.g[i] = (float)drift(0, block, i);
            f->params.w[i] += s->ops->per == BM_BLOCK ? f->params.g[i] : 0;
        }
        assert_ok(bm_strategy_worker_end(s, k, samples(k, block), &good));
    }
    assert_ok(bm_strategy_exchange(s));
}

static void check_alike(fixture *f, const char *strategy, bm_filter filter)
{
    bm_strategy *s = open_strategy(f, strategy);
    float start[N], model[N], delta[N] = {0}, got[N];

    memcpy(start, f->params.w, sizeof start);
    memcpy(model, start, sizeof model);
    for (int t = 0; t < BLOCKS; t++) {
        float x[N];

        train_alike(f, s, t);
        for (int i = 0; i < N; i++)
            x[i] = start[i] + (float)drift(0, t, i) - start[i];
        bm_filter_block(&filter, N, x, model, delta, x);
        memcpy(start, x, sizeof start);
        assert_memory_equal(f->params.w, start, sizeof start);
    }
    assert_ok(bm_strategy_global(s, got));
    assert_memory_equal(got, model, sizeof model);
    bm_strategy_close(s);
}

/* The mean of equal gradients is that gradient. */
static void check_gradients_alike(fixture *f)
{
    bm_strategy *s = open_strategy(f, "ssgd");

    for (int t = 0; t < BLOCKS; t++) {
        train_alike(f, s, t);
        for (int i = 0; i < N; i++)
            assert_true(f->params.g[i] == (float)drift(0, t, i));
    }
    bm_strategy_close(s);
}

/* Workers that learn the same give the bits of one worker. */
static void test_equal_workers_give_the_bits_of_one(void **state)
{
    static const char *const sums[] = {"job.sum=tree", "job.sum=exact"};
    fixture *f = *state;

    FOR_EACH (i, sums) {
        fixture_set(f, sums[i]);
        check_alike(f, "bmuf",
                    (bm_filter){.momentum = bm_filter_momentum_of_many(WORKERS),
                                .rate = 1,
                                .nesterov = true});
        check_alike(f, "average", (bm_filter){.rate = 1});
        check_gradients_alike(f);
    }
}

/* One worker has an infinite weight: the mean is that of the others. */
static void test_worker_that_is_not_finite_is_left_out(void **state)
{
    fixture *f = *state;
    bm_strategy *s = open_strategy(f, "average");
    int rank = bm_comm_rank(f->comm);
    int last = bm_comm_first(f->comm, WORKERS, rank + 1);
    double sum = 0, weights = 0;
    float before = f->params.w[7];

    for (int k = 0; k < WORKERS; k++)
        if (k != 1) {
            sum += samples(k, 1) * drift(k, 1, 7);
            weights += samples(k, 1);
        }
    for (int k = bm_comm_first(f->comm, WORKERS, rank); k < last; k++) {
        bool good = true;
        bm_strategy_begin(s, k, NULL);
        for (int i = 0; i < N; i++)
            f->params.w[i] += (float)drift(k, 1, i);
        if (k == 1)
            f->params.w[N / 2] = k % 2 ? INFINITY : NAN;
        assert_ok(bm_strategy_worker_end(s, k, samples(k, 1), &good));
        assert_int_equal(good, k != 1);
    }
    assert_ok(bm_strategy_exchange(s));
    assert_true(s->update.weight == weights);
    assert_true(near(f->params.w[7], before + sum / weights, 1e-6));
    for (int i = 0; i < N; i++)
        assert_true(isfinite(f->params.w[i]));
    bm_strategy_close(s);
}

static void check_ssgd(fixture *f)
{
    bm_strategy *s = open_strategy(f, "ssgd");
    int rank = bm_comm_rank(f->comm);
    int last = bm_comm_first(f->comm, WORKERS, rank + 1);

    for (int t = 0; t < BLOCKS; t++) {
        for (int k = bm_comm_first(f->comm, WORKERS, rank); k < last; k++) {
            bool good = true;
            for (int i = 0; i < N; i++)
                f->params.g[i] = (float)drift(k, t, i);
            assert_ok(bm_strategy_worker_end(s, k, samples(k, t), &good));
        }
        assert_ok(bm_strategy_exchange(s));
        for (int i = 0; i < N; i++)
            assert_true(near(f->params.g[i], mean_drift(t, i), 1e-6));
        assert_true(isnan(s->update.g_norm) && isnan(s->update.delta_norm) &&
                    isnan(s->update.cos));
    }
    bm_strategy_close(s);
}

static void test_ssgd_gives_all_ranks_the_mean_gradient(void **state)
{
    check_ssgd(*state);
}

/* In every mode of the sum, sharded and with one coordinator. */
static void test_strategies_follow_their_equations_with_every_sum(void **state)
{
    static const char *const sums[] = {"job.sum=tree",    "job.sum=exact",
                                       "job.sum=mpi",     "job.sum=ring",
                                       "job.sum=halving", "job.sum=hier"};
    static const char *const where[] = {"job.coordinator=sharded",
                                        "job.coordinator=root"};
    fixture *f = *state;

    fixture_set(f, "bmuf.momentum=0.75");
    FOR_EACH (m, sums)
        FOR_EACH (c, where) {
            fixture_set(f, sums[m]);
            fixture_set(f, where[c]);
            check_filter(f, "bmuf", 0.75, 1, true);
            check_filter(f, "average", 0, 1, false);
            check_ssgd(f);
        }
}

static void test_invalid_settings_are_reported_by_name(void **state)
{
    fixture *f = *state;
    bm_strategy *s = NULL;

    fixture_set(f, "bmuf.momentum=1.5");
    assert_int_equal(
        bm_strategy_open(&s, "bmuf", f->config, f->comm, &f->params),
        BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "bmuf.momentum"));
    assert_int_equal(
        bm_strategy_open(&s, "local", f->config, f->comm, &f->params),
        BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "5"));
    assert_int_equal(
        bm_strategy_open(&s, "wishing", f->config, f->comm, &f->params),
        BM_ERR_CONFIG);
    assert_null(s);
}

/* One worker on one rank exchanges nothing, and keeps no vectors for it: w, g, two
 * copies of the model and the momentum. */
static void test_local_keeps_no_exchange(void **state)
{
    fixture *f = *state;
    bm_strategy *s = NULL;
    bm_footprint size = {0};
    int ranks = bm_comm_size(f->comm);

    fixture_set(f, "job.workers=1");
    fixture_set(f, "train.strategy=local");
    fixture_set(f, "train.checkpoint_every=0");
    assert_int_equal(
        bm_strategy_open(&s, "local", f->config, f->comm, &f->params),
        ranks > 1 ? BM_ERR_CONFIG : BM_OK);
    if (ranks > 1) {
        assert_non_null(strstr(bm_last_message(), "ranks for 1 workers"));
        return;
    }
    assert_null(s->exchange);
    bm_strategy_close(s);
    assert_ok(bm_trainer_footprint(f->config, 1, &size));
    assert_true(size.memory == 5);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_classical_filter_follows_its_recurrence),
        TEST(test_nesterov_filter_starts_ahead_of_the_model),
        TEST(test_average_is_the_weighted_mean),
        TEST(test_statistics_become_the_plain_mean),
        TEST(test_filter_without_momentum_is_model_averaging),
        TEST(test_one_coordinator_gives_the_bits_of_many),
        TEST(test_number_of_ranks_changes_no_bits),
        TEST(test_block_without_data_changes_nothing),
        TEST(test_equal_workers_give_the_bits_of_one),
        TEST(test_worker_that_is_not_finite_is_left_out),
        TEST(test_ssgd_gives_all_ranks_the_mean_gradient),
        TEST(test_strategies_follow_their_equations_with_every_sum),
        TEST(test_invalid_settings_are_reported_by_name),
        TEST(test_local_keeps_no_exchange),
    };
    return RUN_GROUP_MPI("bmuf", tests);
}
