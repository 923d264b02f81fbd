/*
 * The trainer on a linear least-squares problem, on any number of ranks:
 * against the whole algorithm in double precision, against itself on one rank,
 * and in the cases in which two strategies must coincide.
 */
#include "tests/support/reference/halts.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>

static void test_number_of_ranks_changes_no_bits(void **state)
{
    static result together, alone;
    bm_comm *one = NULL;

    if (bm_comm_size(*state) == 1)
        skip(); /* it would compare a run with itself */
    assert_ok(bm_comm_open_alone(&one));
    for (int k = 0; k < KINDS; k++) {
        run_job(*state, ragged, kinds[k], &together);
        run_job(one, ragged, kinds[k], &alone);
        assert_memory_equal(&together, &alone, sizeof alone);
    }
    bm_comm_close(one);
}

/* What a checkpoint holds, in memory. */
typedef struct saved {
    bm_position at;
    bm_restart_numbers restart;
    size_t n;
    char name[STATES][32];
    float x[STATES][N];
} saved;

static void save(job *j, saved *to)
{
    bm_state states[STATES];

    to->at = bm_trainer_position(j->trainer);
    to->restart = bm_trainer_numbers(j->trainer);
    to->n = bm_trainer_state(j->trainer, states, STATES);
    for (size_t i = 0; i < to->n; i++) {
        memcpy(to->name[i], states[i].name, sizeof to->name[i]);
        memcpy(to->x[i], states[i].x, states[i].count * sizeof(float));
    }
}

static void restore(job *j, const saved *from)
{
    bm_state states[STATES];

    assert_int_equal(bm_trainer_state(j->trainer, states, STATES), from->n);
    for (size_t i = 0; i < from->n; i++) {
        assert_string_equal(states[i].name, from->name[i]);
        memcpy(states[i].x, from->x[i], states[i].count * sizeof(float));
    }
    assert_ok(bm_trainer_resume(j->trainer, from->at, from->restart));
}

/* Six blocks in one go, or stopped and resumed after each of them. */
static void test_resuming_changes_no_bits(void **state)
{
    static result straight, resumed;
    static saved checkpoint;

    for (int k = 0; k < KINDS; k++) {
        run_job(*state, ragged, kinds[k], &straight);
        memset(&resumed, 0, sizeof resumed);
        for (int t = 0; t < EPOCHS * BLOCKS; t++) {
            job j = open_job(*state, ragged, kinds[k]);

            start_job(&j);
            assert_ok(bm_trainer_seek(j.trainer, t));
            if (t > 0)
                restore(&j, &checkpoint);
            run_blocks(&j, t, t + 1, &resumed);
            save(&j, &checkpoint);
            close_job(&j);
        }
        assert_memory_equal(&resumed, &straight, sizeof straight);
    }
}

/* Slices of one name cover the whole vector, so that it can be saved. */
static void test_slices_of_a_state_cover_the_vector(void **state)
{
    bm_state states[STATES];
    bm_comm *comm = *state;

    for (int k = 0; k < KINDS; k++) {
        job j = open_job(comm, ragged, kinds[k]);
        static double covered[N];
        size_t n = 0;

        start_job(&j);
        n = bm_trainer_state(j.trainer, states, STATES);
        memset(covered, 0, sizeof covered);
        for (size_t i = 0; i < n; i++)
            if (strcmp(states[i].name, "delta") == 0)
                for (size_t x = 0; x < states[i].count; x++)
                    covered[states[i].offset + x] += 1;
        assert_ok(bm_comm_sum(comm, covered, N));
        for (int i = 0; i < N; i++)
            assert_true(covered[i] ==
                        (strcmp(kinds[k][0], "train.strategy=bmuf") == 0));
        close_job(&j);
    }
}

/* Where a block ends: zero, unchanged, or the mean, weighted as the models are.
 */
static void end_velocities(bm_local_policy policy, const double *weight,
                           double v[WORKERS][N])
{
    double total = 0;

    for (int k = 0; k < WORKERS; k++)
        total += weight[k];
    for (int i = 0; i < N; i++) {
        double mean = 0;

        for (int k = 0; k < WORKERS; k++)
            mean += weight[k] * v[k][i] / total;
        for (int k = 0; k < WORKERS && policy != BM_LOCAL_KEEP; k++)
            v[k][i] = policy == BM_LOCAL_AVERAGE ? mean : 0;
    }
}

/* The whole of bmuf in double: local momentum SGD, weighted mean, filter. */
static void expect_bmuf(const problem *p, bm_local_policy policy, double mu,
                        double eta, double zeta, double *model)
{
    static double start_[N], delta[N], mean[N], w[N], v[WORKERS][N];

    memset(start_, 0, sizeof start_);
    memset(delta, 0, sizeof delta);
    memset(v, 0, sizeof v);
    memset(model, 0, N * sizeof *model);
    for (int t = 0; t < EPOCHS * BLOCKS; t++) {
        bm_position at = {t / BLOCKS, t % BLOCKS};
        double seen[WORKERS], total = 0;

        memset(mean, 0, sizeof mean);
        for (int k = 0; k < WORKERS; k++) {
            seen[k] = (double)share(p, at, k);
            memcpy(w, start_, sizeof w);
            learn_share(p, at, k, mu, 0.25, w, v[k]);
            for (int i = 0; i < N; i++)
                mean[i] += seen[k] * (w[i] - start_[i]);
            total += seen[k];
        }
        end_velocities(policy, seen, v);
        for (int i = 0; i < N; i++) {
            delta[i] = eta * delta[i] + zeta * mean[i] / total;
            model[i] += delta[i];
            start_[i] = model[i] + eta * delta[i];
        }
    }
}

/* With each policy for local momentum. */
static void test_bmuf_follows_its_equations_in_double(void **state)
{
    static const char *const policies[] = {[BM_LOCAL_RESET] = "reset",
                                           [BM_LOCAL_KEEP] = "keep",
                                           [BM_LOCAL_AVERAGE] = "average"};
    static result got;
    static double expected[N];

    FOR_EACH (k, policies) {
        char policy[40];
        const char *const settings[] = {"train.strategy=bmuf",
                                        "bmuf.momentum=0.75",
                                        "bmuf.rate=0.875",
                                        "sgd.momentum=0.5",
                                        policy,
                                        NULL};

        snprintf(policy, sizeof policy, "sgd.local_state=%s", policies[k]);
        run_job(*state, ragged, settings, &got);
        expect_bmuf(&ragged, (bm_local_policy)k, 0.5, 0.75, 0.875, expected);
        for (int i = 0; i < N; i++)
            assert_true(near(got.model[i], expected[i], 1e-6));
        assert_int_equal(got.left_out, 0);
        assert_true(got.score[0].count == 12 + 17 + 22); /* 0 and 4: none */
    }
}

/* On a linear problem, N mini-batches equal one of N times the size. */
static void test_ssgd_is_one_worker_with_all_the_data(void **state)
{
    static const char *const many[] = {"train.strategy=ssgd", NULL};
    static const char *const single[] = {"train.strategy=local", NULL};
    static const problem whole = {.workers = 1, .batch = BATCH * WORKERS};
    static result got, expected;
    bm_comm *one = NULL;

    assert_ok(bm_comm_open_alone(&one));
    run_job(*state, even, many, &got);
    run_job(one, whole, single, &expected);
    for (int i = 0; i < N; i++)
        assert_true(near(got.model[i], expected.model[i], 1e-6));
    for (int t = 0; t < EPOCHS * BLOCKS; t++)
        assert_true(near(got.score[t].loss, expected.score[t].loss, 1e-5));
    bm_comm_close(one);
}

/* One worker, for any length of blocks: an exchange of gradients changes no
 * bits; an exchange of models rounds once more than plain SGD, if local
 * momentum is kept. */
static void test_one_worker_is_plain_sgd(void **state)
{
    static const char *const local[] = {"train.strategy=local", STEADY, NULL};
    static const char *const ssgd[] = {"train.strategy=ssgd", STEADY, NULL};
    static const char *const bmuf[] = {"train.strategy=bmuf", "bmuf.momentum=0",
                                       "sgd.local_state=keep", STEADY, NULL};
    static const int64_t lengths[] = {1, 2, 6};
    static result expected, got;
    bm_comm *one = NULL;

    (void)state;
    assert_ok(bm_comm_open_alone(&one));
    FOR_EACH (k, lengths) {
        problem p = {.workers = 1, .batch = BATCH, .steps = lengths[k]};

        run_job(one, p, local, &expected);
        run_job(one, p, ssgd, &got);
        assert_memory_equal(&got, &expected, sizeof got);
        run_job(one, p, bmuf, &got);
        for (int i = 0; i < N; i++)
            assert_true(near(got.model[i], expected.model[i], 1e-6));
    }
    bm_comm_close(one);
}

/* Averaging models after each step of plain SGD averages gradients, in every
 * mode of the sum. */
static void test_averaging_at_every_step_is_ssgd(void **state)
{
    static const char *const sums[] = {"job.sum=tree",    "job.sum=exact",
                                       "job.sum=mpi",     "job.sum=ring",
                                       "job.sum=halving", "job.sum=hier"};
    static const char *const where[] = {"job.coordinator=sharded",
                                        "job.coordinator=root"};
    static const char *const models[] = {"train.strategy=average",
                                         "train.strategy=bmuf"};
    /* A mini-batch holds a whole share. */
    static const problem steps[] = {
        {.workers = WORKERS, .batch = 100, .ragged = true},
        {.workers = WORKERS, .batch = BATCH, .steps = 1}};
    static result of_models, of_gradients;

    FOR_EACH (m, sums)
        FOR_EACH (c, where)
            FOR_EACH (k, models)
                FOR_EACH (p, steps) {
                    const char *settings[] = {
                        models[k],        sums[m],           where[c], STEADY,
                        "sgd.momentum=0", "bmuf.momentum=0", NULL};

                    run_job(*state, steps[p], settings, &of_models);
                    settings[0] = "train.strategy=ssgd";
                    run_job(*state, steps[p], settings, &of_gradients);
                    for (int i = 0; i < N; i++)
                        assert_true(near(of_models.model[i],
                                         of_gradients.model[i], 1e-6));
                }
}

/* Workers with the same data give the bits of one worker. */
static void test_workers_with_equal_data_equal_one_worker(void **state)
{
    static const char *const strategies[] = {
        "train.strategy=bmuf", "train.strategy=average", "train.strategy=ssgd"};
    static const char *const sums[] = {"job.sum=tree", "job.sum=exact"};
    static const problem many = {
        .workers = WORKERS, .batch = BATCH, .alike = true};
    static const problem single = {.workers = 1, .batch = BATCH, .alike = true};
    static result together, alone;
    bm_comm *one = NULL;

    assert_ok(bm_comm_open_alone(&one));
    FOR_EACH (k, strategies)
        FOR_EACH (m, sums) {
            const char *const settings[] = {strategies[k], sums[m], STEADY,
                                            "bmuf.momentum=0.75", NULL};

            run_job(*state, many, settings, &together);
            run_job(one, single, settings, &alone);
            assert_memory_equal(together.model, alone.model,
                                sizeof alone.model);
            for (int t = 0; t < EPOCHS * BLOCKS; t++)
                assert_true(near(together.score[t].loss,
                                 WORKERS * alone.score[t].loss, 1e-9));
        }
    bm_comm_close(one);
}

static void test_training_finds_the_weights(void **state)
{
    static const char *const all[][4] = {
        {"train.strategy=bmuf", "bmuf.momentum=0.5", "sgd.momentum=0.5", NULL},
        {"train.strategy=average", "sgd.momentum=0.5", NULL},
        {"train.strategy=ssgd", "sgd.momentum=0.5", NULL},
    };
    problem p = {.workers = WORKERS, .batch = BATCH, .unknowns = 5};

    FOR_EACH (k, all) {
        static result r;

        run_job(*state, p, all[k], &r);
        assert_true(r.score[0].count == 6 * BATCH * WORKERS);
        assert_true(r.score[5].loss < 0.01 * r.score[0].loss);
        for (size_t i = 0; i < N; i += N / 5)
            assert_true(near(r.model[i], truth(i), 0.01));
    }
}

static void test_invalid_settings_are_reported(void **state)
{
    static const char *const bad[][3] = {
        {"train.strategy=hope", NULL},
        {"sgd.momentun=0.9", NULL},
        {"train.strategy=local", NULL},
        {"job.sum=abacus", NULL},
    };

    FOR_EACH (i, bad) {
        job j = open_job(*state, even, bad[i]);
        bm_task task = {&j.problem,  move,       gradient, read_score,
                        count_steps, epoch_size, NULL,     NULL};

        assert_int_equal(
            bm_trainer_open(&j.trainer, j.config, j.comm, &j.params, &task),
            BM_ERR_CONFIG);
        assert_null(j.trainer);
        close_job(&j);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_number_of_ranks_changes_no_bits),
        TEST(test_resuming_changes_no_bits),
        TEST(test_slices_of_a_state_cover_the_vector),
        TEST(test_bmuf_follows_its_equations_in_double),
        TEST(test_ssgd_is_one_worker_with_all_the_data),
        TEST(test_one_worker_is_plain_sgd),
        TEST(test_averaging_at_every_step_is_ssgd),
        TEST(test_workers_with_equal_data_equal_one_worker),
        TEST(test_training_finds_the_weights),
        TEST(test_invalid_settings_are_reported),
    };
    return RUN_GROUP_MPI("trainer", tests);
}
