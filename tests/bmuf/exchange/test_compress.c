/*
 * Strategies whose vectors travel as codes: with exact codes the bits are those
 * without codes, and with error feedback all codes converge to the same point.
 */
#include "bmuf/exchange/compress.h"
#include "tests/support/reference/equations.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const codes[] = {
#define X(name) #name,
    BM_CODES(X)
#undef X
};

/* Columns of two rows are sent as floats. */
static void test_onebit_of_short_columns_equals_ssgd(void **state)
{
    static const char *const ssgd[] = {"train.strategy=ssgd",
                                       "sgd.momentum=0.5", NULL};
    static const char *const onebit[] = {"train.strategy=onebit",
                                         "sgd.momentum=0.5", NULL};
    static const bm_segment matrix = {"w", 0, N, 2, {N / 2, 2}, 0};
    static result expected, got;
    job j = open_job(*state, ragged, onebit);

    run_job(*state, ragged, ssgd, &expected);
    memset(&got, 0, sizeof got);
    j.params.segments = &matrix;
    j.params.n_segments = 1;
    start_job(&j);
    run_blocks(&j, 0, EPOCHS * BLOCKS, &got);
    close_job(&j);
    assert_memory_equal(&got, &expected, sizeof got);
}

static void test_a_warm_up_equals_ssgd(void **state)
{
    static const char *const ssgd[] = {"train.strategy=ssgd", NULL};
    static const char *const warm[] = {"train.strategy=onebit",
                                       "block.warmup=100", NULL};
    static const char *const cold[] = {"train.strategy=onebit", NULL};
    static result expected, got;

    run_job(*state, ragged, ssgd, &expected);
    run_job(*state, ragged, warm, &got);
    assert_memory_equal(&got, &expected, sizeof got);
    run_job(*state, ragged, cold, &got);
    assert_memory_not_equal(&got, &expected, sizeof got);
}

/* fp32 changes no bits of any strategy, also where eta changes. */
static void test_an_exact_code_changes_no_bits(void **state)
{
    static const char *const all[][3] = {
        {"train.strategy=bmuf"},
        {"train.strategy=bmuf", "bmuf.nesterov=no", "job.coordinator=root"},
        {"train.strategy=average", "sgd.local_state=average"},
        {"train.strategy=slowmo", "sgd.local_state=keep"},
        {"train.strategy=cntk"},
        {"train.strategy=bmuf", "block.warmup=2", "train.ema=0.9"},
        {"train.strategy=bmuf", "bmuf.momentum=0.3@0 0.9@0.5 0.5@1"},
        {"train.strategy=bmuf", "block.workers=1@0 5@1"},
        {"train.strategy=bmuf", "bmuf.time_constant=2000"},
    };
    static result expected, got;

    FOR_EACH (k, all) {
        const char *const none[] = {
            all[k][0], all[k][1] ? all[k][1] : "job.sum=tree", all[k][2], NULL};
        const char *const fp32[] = {"compress.code=fp32", none[0], none[1],
                                    none[2], NULL};

        run_job(*state, ragged, none, &expected);
        run_job(*state, ragged, fp32, &got);
        assert_memory_equal(&got, &expected, sizeof got);
    }
}

/* ---- a quadratic --------------------------------------------------------- */

/* A model of some columns, and statistics. */
enum {
    ROWS = 100,
    COLUMNS = 4,
    LEARNED = COLUMNS * ROWS,
    ALL = LEARNED + 20,
    CREW = 4
};

/* The target of all workers, and the fraction of the way in a block or step. It
 * is small, so that what a code sends late still counts. */
static float goal(size_t i)
{
    return (float)(2 * uniform(i) - 1);
}

static float pull(int worker, size_t i)
{
    uint64_t key = 7777 * (uint64_t)(worker + 1) + i;
    return (float)(0.01 + 0.01 * uniform(key));
}

/* The global model after TIMES blocks or steps, on one rank. settings: the
 * strategy, then assignments. */
static void solve(const char *const *settings, float *model)
{
    enum { TIMES = 1500 };
    static const bm_segment matrix = {"w", 0, LEARNED, 2, {COLUMNS, ROWS}, 0};
    bm_params p = {
        .n = ALL, .n_learned = LEARNED, .segments = &matrix, .n_segments = 1};
    bm_comm *comm = NULL;
    bm_config *config = NULL;
    bm_strategy *s = NULL;

    assert_ok(bm_comm_open_alone(&comm));
    assert_ok(bm_config_new(&config));
    assert_ok(bm_config_set(config, "job.workers=4"));
    for (size_t i = 1; settings[i] != NULL; i++)
        assert_ok(bm_config_set(config, settings[i]));
    assert_ok(bm_backend_open(&p.be, "cpu", 0));
    assert_ok(bm_alloc(p.be, ALL, &p.w));
    assert_ok(bm_alloc(p.be, ALL, &p.g));
    assert_ok(bm_strategy_open(&s, settings[0], config, comm, &p));
    for (int t = 0; t < TIMES; t++) {
        bool steps = s->ops->per == BM_STEP;

        bm_strategy_block(s, t, 1);
        for (int k = 0; k < CREW; k++) {
            bool good = true;

            if (!steps)
                bm_strategy_begin(s, k, NULL);
            for (size_t i = 0; i < ALL; i++) {
                p.g[i] = pull(k, i) * (p.w[i] - goal(i));
                p.w[i] -= steps ? 0 : p.g[i];
            }
            assert_ok(bm_strategy_worker_end(s, k, 10 + k, &good));
            assert_true(good);
        }
        assert_ok(bm_strategy_exchange(s));
        for (size_t i = 0; i < ALL && steps; i++)
            p.w[i] -= p.g[i] / 2;
    }
    assert_ok(bm_strategy_global(s, model));
    bm_strategy_close(s);
    bm_free(p.be, p.w);
    bm_free(p.be, p.g);
    bm_backend_close(p.be);
    bm_config_free(config);
    bm_comm_close(comm);
}

static void assert_there(const float *model, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_true(fabs((double)model[i] - goal(i)) < 0.01);
}

/* Statistics have the bits that they would have without codes. */
static void test_all_codes_converge_to_the_same_optimum(void **state)
{
    static const char *const strategies[] = {"bmuf", "average"};
    static float none[ALL], coded[ALL];

    if (bm_comm_rank(*state) > 0)
        return;
    FOR_EACH (m, strategies) {
        char code[40] = "compress.code=none";
        const char *const settings[] = {strategies[m], code,
                                        "bmuf.momentum=0.5", NULL};

        solve(settings, none);
        assert_there(none, ALL);
        FOR_EACH (k, codes) {
            if (bm_code_find(codes[k], 1).ops->exact)
                continue;
            snprintf(code, sizeof code, "compress.code=%s", codes[k]);
            solve(settings, coded);
            assert_there(coded, ALL);
            assert_memory_equal(coded + LEARNED, none + LEARNED,
                                (ALL - LEARNED) * sizeof *none);
        }
    }
}

static void test_onebit_converges_to_the_optimum(void **state)
{
    static const char *const settings[] = {"onebit", NULL};
    static float model[ALL];

    if (bm_comm_rank(*state) > 0)
        return;
    solve(settings, model);
    assert_there(model, ALL);
}

/* ---- conflicting settings ------------------------------------------------ */

static void test_conflicting_settings_are_rejected(void **state)
{
    static const char *const bad[][4] = {
        {"train.strategy=ssgd", "compress.code=int8", NULL,
         "set train.strategy = onebit"},
        {"train.strategy=onebit", "compress.code=int8", NULL,
         "is for updates of models"},
        {"compress.code=int8", "job.sum=exact", NULL, "set job.sum = tree"},
        {"train.strategy=onebit", "job.sum=ring", NULL, "set job.sum = tree"},
        {"compress.code=bf16", "job.exchange=nccl", NULL,
         "set job.exchange = host"},
        {"compress.code=bf16", "job.exchange=mpi", NULL,
         "job.exchange = mpi conflicts with codes"},
    };

    FOR_EACH (i, bad) {
        job j = open_job(*state, even, bad[i]);
        bm_task task = {&j.problem,  move,       gradient, read_score,
                        count_steps, epoch_size, NULL,     NULL};

        assert_int_equal(
            bm_trainer_open(&j.trainer, j.config, j.comm, &j.params, &task),
            BM_ERR_CONFIG);
        assert_non_null(strstr(bm_last_message(), bad[i][3]));
        close_job(&j);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_onebit_of_short_columns_equals_ssgd),
        TEST(test_a_warm_up_equals_ssgd),
        TEST(test_an_exact_code_changes_no_bits),
        TEST(test_all_codes_converge_to_the_same_optimum),
        TEST(test_onebit_converges_to_the_optimum),
        TEST(test_conflicting_settings_are_rejected),
    };
    return RUN_GROUP_MPI("compress", tests);
}
