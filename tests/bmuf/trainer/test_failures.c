/* The trainer when workers see NaN or infinity, diverge, or fail. */
#include "core/finite.h"
#include "tests/support/reference/halts.h"
#include "tests/support/support.h"

#include <math.h>
#include <string.h>

/* A gradient that is not finite changes nothing, and is counted. */
static void test_gradients_that_are_not_finite_are_skipped(void **state)
{
    problem p = ragged;
    bm_comm *one = NULL;

    assert_ok(bm_comm_open_alone(&one));
    p.poisoned = 1 + 1;
    p.poison = NAN;
    for (int k = 0; k < KINDS; k++) {
        static result got, alone;
        bm_position at = {0, 2};

        run_job(*state, p, kinds[k], &got);
        run_job(one, p, kinds[k], &alone);
        assert_memory_equal(&got, &alone, sizeof got);
        assert_int_equal(got.left_out, 0);
        assert_int_equal(got.bad_steps,
                         (share(&p, at, 1) + p.batch - 1) / p.batch);
        for (int i = 0; i < N; i++)
            assert_true(isfinite(got.model[i]));
    }
    bm_comm_close(one);
}

/* Whether all that a checkpoint holds is finite; of this rank. */
static bool is_sound(job *j)
{
    bm_state states[STATES];
    size_t n = bm_trainer_state(j->trainer, states, STATES);

    for (size_t i = 0; i < n; i++)
        if (!bm_all_finite(states[i].x, states[i].count))
            return false;
    return true;
}

/* Its model and momentum overflow. It goes on with W, and is as good as the others
 * in the blocks that follow. */
static void test_a_model_of_easgd_that_is_not_finite_becomes_w(void **state)
{
    static const char *const settings[] = {"train.strategy=easgd",
                                           "easgd.period=2", "sgd.momentum=0.5",
                                           "train.diverged=0", NULL};
    problem p = even;
    job j;

    p.poisoned = 1 + 1;
    p.poison = 3e38;
    j = open_job(*state, p, settings);
    start_job(&j);
    for (int t = 0; t < EPOCHS * BLOCKS; t++) {
        bm_block_report report;

        assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
        assert_true(t == 2 ? report.bad_steps > 0 : report.bad_steps == 0);
        assert_true(is_sound(&j));
    }
    close_job(&j);
}

/* The loss of one worker explodes: its model is not in the mean. */
static void test_diverged_worker_is_left_out(void **state)
{
    static const char *const policies[][4] = {
        {"train.strategy=bmuf", NULL},
        {"train.strategy=bmuf", "sgd.momentum=0.5", "sgd.local_state=keep"},
        {"train.strategy=bmuf", "sgd.momentum=0.5", "sgd.local_state=average"},
    };
    static const char *const off[] = {"train.strategy=bmuf", "train.diverged=0",
                                      NULL};
    static result got, clean, followed;

    FOR_EACH (k, policies) {
        problem p = ragged;

        run_job(*state, p, policies[k], &clean);
        p.poisoned = 1 + 1;
        p.poison = p.excess = 1e6;
        run_job(*state, p, policies[k], &got);
        run_job(*state, p, off, &followed);
        assert_int_equal(got.left_out, 1);
        assert_int_equal(clean.left_out, 0);
        assert_int_equal(followed.left_out, 0);
        assert_true(fabsf(followed.model[N / 2]) > 1e4);
        for (int i = 0; i < N; i++)
            assert_true(fabsf(got.model[i] - clean.model[i]) < 1);
    }
}

static const char *const all_kinds[][2] = {
    {"train.strategy=bmuf", NULL},
    {"train.strategy=ssgd", NULL},
    {"train.strategy=asgd", NULL},
};

/* A block of longer sequences has a larger loss, and that of chance is larger,
 * too: no worker has diverged. One with more than that has. */
static void test_longer_sequences_are_no_divergence(void **state)
{
    static result got, clean;
    problem p = ragged;

    p.longer = 100;
    for (int k = 0; k < KINDS; k++) {
        run_job(*state, ragged, kinds[k], &clean);
        run_job(*state, p, kinds[k], &got);
        assert_int_equal(got.left_out, 0);
        assert_memory_equal(got.model, clean.model, sizeof got.model);
    }
    p.poisoned = 1 + 1;
    p.excess = 1e6;
    run_job(*state, p, kinds[0], &got);
    assert_int_equal(got.left_out, 1);
}

/* A checkpoint has the loss of chance, with which that of the block before is
 * compared. */
static void test_longer_sequences_are_judged_alike_after_a_halt(void **state)
{
    problem p = ragged;

    p.longer = 100;
    assert_halts_change_no_bits(*state, p, kinds[0]);
}

/* Sequences are shorter, and chance has less of a loss: one worker's loss does not
 * fall with it, but is no larger than in the block before. */
static void test_losses_of_shorter_sequences_need_not_fall(void **state)
{
    static result got;
    problem p = even;

    p.longer = 0.01;
    p.poisoned = 1 + 1;
    p.excess = 0.2;
    run_job(*state, p, kinds[0], &got);
    assert_int_equal(got.left_out, 0);
    p.excess = 2;
    run_job(*state, p, kinds[0], &got);
    assert_int_equal(got.left_out, 1);
}

/* The first block, of so many mini-batches for each worker. */
static bm_status run_first_block(bm_comm *comm, const char *const *settings,
                                 int64_t steps, double untrained, double growth,
                                 result *out)
{
    bm_block_report report;
    problem p = even;
    bm_status status = BM_OK;
    job j;

    p.steps = steps;
    p.untrained = untrained;
    p.growth = growth;
    j = open_job(comm, p, settings);
    start_job(&j);
    memset(out, 0, sizeof *out);
    status = bm_trainer_block(j.trainer, rate_of(&j.problem, 0), &report);
    out->left_out = status == BM_OK ? report.left_out : 0;
    if (status == BM_OK)
        assert_ok(bm_trainer_global(j.trainer, out->model));
    close_job(&j);
    return status;
}

/* A network whose first weights are worse than chance, by a thousand here, has not
 * diverged as long as it gets better. */
static void test_first_weights_are_not_judged(void **state)
{
    static result got, calm;

    FOR_EACH (k, all_kinds)
        for (int64_t steps = 1; steps <= 6; steps += 5) {
            assert_ok(
                run_first_block(*state, all_kinds[k], steps, 0, 1, &calm));
            assert_ok(
                run_first_block(*state, all_kinds[k], steps, 1e3, 0.9, &got));
            assert_int_equal(got.left_out, 0);
            assert_memory_equal(got.model, calm.model, sizeof got.model);
        }
}

static void test_a_rise_in_the_first_block_is_divergence(void **state)
{
    static result got;

    FOR_EACH (k, all_kinds)
        assert_int_equal(
            run_first_block(*state, all_kinds[k], 6, 1e3, 1.5, &got),
            BM_ERR_NUMERIC);
    assert_null(strstr(bm_last_message(), "checkpoint")); /* none so far */
}

/* What goes wrong with worker 1, with gradients that are finite. */
static const problem broken[] = {
    {.poison = 3e38}, /* the weights overflow */
    {.excess = NAN},
    {.excess = INFINITY},
    {.unscored = true},
};

static problem break_worker(problem how)
{
    how.workers = WORKERS;
    how.batch = BATCH;
    how.ragged = true;
    how.poisoned = 1 + 1;
    return how;
}

/* The result is that of a worker without data. */
static void test_worker_that_is_not_finite_is_left_out(void **state)
{
    static const char *const ways[][4] = {
        {"train.strategy=bmuf", STEADY, NULL},
        {"train.strategy=bmuf", STEADY, "job.sum=exact", NULL},
        {"train.strategy=bmuf", STEADY, "sgd.local_state=average", NULL},
        {"train.strategy=average", STEADY, NULL},
    };
    static result got, without;

    FOR_EACH (k, ways) {
        run_job(*state, break_worker((problem){.absent = true}), ways[k],
                &without);
        assert_int_equal(without.left_out, 0);
        FOR_EACH (i, broken) {
            run_job(*state, break_worker(broken[i]), ways[k], &got);
            assert_int_equal(got.left_out, 1);
            assert_int_equal(got.bad_steps, 0);
            assert_memory_equal(got.model, without.model, sizeof got.model);
            assert_memory_equal(got.score, without.score, sizeof got.score);
        }
    }
}

/* With one model for all no worker can be left out. */
static void test_loss_that_is_not_finite_ends_training_by_steps(void **state)
{
    static const char *const settings[] = {"train.strategy=ssgd", STEADY, NULL};
    static const double losses[] = {NAN, INFINITY};

    FOR_EACH (i, losses) {
        bm_block_report report;
        job j = open_job(*state, break_worker((problem){.excess = losses[i]}),
                         settings);

        start_job(&j);
        for (int t = 0; t < 2; t++)
            assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
        assert_int_equal(bm_trainer_block(j.trainer, 0.25, &report),
                         BM_ERR_NUMERIC);
        assert_non_null(strstr(bm_last_error(), "block 3 of epoch 1"));
        close_job(&j);
    }
}

/* Block 2 of epoch 0 has mini-batches, but the loss skips all sequences. */
static bm_status skip_a_block(void *self, bm_params *params, int worker,
                              int64_t step, double *samples)
{
    problem *p = self;

    if (p->at.epoch > 0 || p->at.block != 2)
        return gradient(self, params, worker, step, samples);
    *samples = 0;
    p->score[worker].skipped += 1;
    p->batches[worker] += 1;
    return BM_OK;
}

static void assert_same_states(const halt *a, const halt *b)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        assert_memory_equal(a->states[i].x, b->states[i].x,
                            a->states[i].count * sizeof(float));
}

/* Trains a job; whether the block that is skipped changes W. If not, it changes
 * no other state either, such as moments. */
static bool run_skipping(bm_comm *comm, problem p, const char *const *settings,
                         result *out)
{
    enum { WHICH = 2 };
    static float before[N], after[N];
    bool changes = false;
    halt then = {0}, now = {0};
    job j = open_job(comm, p, settings);
    bm_task task = {&j.problem,  move,       skip_a_block, read_score,
                    count_steps, epoch_size, NULL,         NULL};

    memset(out, 0, sizeof *out);
    assert_ok(bm_trainer_open(&j.trainer, j.config, j.comm, &j.params, &task));
    run_blocks(&j, 0, WHICH, out);
    assert_ok(bm_trainer_global(j.trainer, before));
    save_job(&j, WHICH, &then);
    run_blocks(&j, WHICH, WHICH + 1, out);
    assert_ok(bm_trainer_global(j.trainer, after));
    save_job(&j, WHICH + 1, &now);
    assert_true(out->score[WHICH].skipped > 0);
    assert_true(out->score[WHICH].sequences == 0);
    run_blocks(&j, WHICH + 1, EPOCHS * BLOCKS, out);
    assert_int_equal(out->left_out, 0);
    close_job(&j);
    for (int i = 0; i < N; i++)
        changes = changes || before[i] != after[i];
    if (!changes)
        assert_same_states(&then, &now);
    free_halt(&then);
    free_halt(&now);
    return changes;
}

/* It is no divergence, whether workers exchange by blocks, steps or events. Of
 * easgd's workers each has a model of its own, which it pushes all the same; so
 * has it under block.fragments, with what it learned in blocks before. */
static void test_a_block_without_usable_sequences_changes_nothing(void **state)
{
    static const char *const warming[] = {"train.strategy=bmuf",
                                          "block.warmup=9", NULL};
    static const char *const parts[] = {"train.strategy=bmuf",
                                        "block.fragments=2", NULL};
    static const char *const local[] = {"train.strategy=local", NULL};
    static result got, alone;
    bm_comm *one = NULL;
    problem single = even;

    assert_ok(bm_comm_open_alone(&one));
    for (int k = 0; k < KINDS; k++) {
        bool changes = run_skipping(*state, even, kinds[k], &got);

        if (changes != (strstr(kinds[k][0], "easgd") != NULL))
            fail_msg("%s %s", kinds[k][0], kinds[k][1]);
        (void)run_skipping(one, even, kinds[k], &alone);
        assert_memory_equal(&got, &alone, sizeof got);
    }
    assert_false(run_skipping(*state, even, warming, &got));
    (void)run_skipping(*state, even, parts, &got);
    single.workers = 1;
    assert_false(run_skipping(one, single, local, &got));
    bm_comm_close(one);
}

/* Losses near zero change by large factors, which is not divergence. */
static void test_small_losses_may_rise(void **state)
{
    static const char *const settings[] = {
        "train.strategy=bmuf", "bmuf.momentum=0.5", "sgd.momentum=0.5", NULL};
    static const char *const strict[] = {
        "train.strategy=bmuf", "bmuf.momentum=0.5", "sgd.momentum=0.5",
        "train.diverged=0.01", NULL};
    problem p = {.workers = WORKERS,
                 .batch = BATCH,
                 .unknowns = 5,
                 .poisoned = 1 + 1,
                 .poison = 0.1,
                 .excess = 0.1};
    static result got;

    run_job(*state, p, settings, &got);
    assert_int_equal(got.left_out, 0);
    run_job(*state, p, strict, &got);
    assert_true(got.left_out > 0);
}

/* BM_ERR_NUMERIC, and the state is that of the block's start. */
static void test_divergence_of_all_workers_ends_training(void **state)
{
    static const char *const settings[] = {"train.strategy=bmuf", NULL};
    problem p = {.workers = 1,
                 .batch = BATCH,
                 .poisoned = 1,
                 .poison = 1e6,
                 .excess = 1e6};
    job j;
    bm_comm *one = NULL;
    bm_block_report report;
    static float before[N], after[N];

    (void)state;
    assert_ok(bm_comm_open_alone(&one));
    j = open_job(one, p, settings);
    start_job(&j);
    assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
    assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
    assert_ok(bm_trainer_global(j.trainer, before));
    assert_int_equal(bm_trainer_block(j.trainer, 0.25, &report),
                     BM_ERR_NUMERIC);
    assert_ok(bm_trainer_global(j.trainer, after));
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(bm_trainer_position(j.trainer).block, 2);
    close_job(&j);
    bm_comm_close(one);
}

/* The setting of zeta is one of the strategy, if it has a filter. */
static void test_the_message_names_the_rates_of_the_strategy(void **state)
{
    static const struct {
        const char *settings[4], *lower;
    } cases[] = {
        {{"train.strategy=bmuf"}, "train.rate or bmuf.rate, set sgd.clip, or"},
        {{"train.strategy=bmuf", "sgd.clip=9"},
         "train.rate, bmuf.rate or sgd.clip, or take"},
        {{"train.strategy=bmuf", "block.fragments=2"},
         "train.rate or bmuf.rate, "},
        {{"train.strategy=bmuf", "block.warmup=9"},
         "Lower train.rate, set sgd.clip, or take"},
        {{"train.strategy=slowmo"}, "train.rate or slowmo.slowmo_lr, "},
        {{"train.strategy=diloco"}, "train.rate or diloco.outer_lr, "},
        {{"train.strategy=lookahead"}, "train.rate or lookahead.alpha, "},
        {{"train.strategy=cntk"}, "train.rate or cntk.block_learning_rate, "},
        {{"train.strategy=fairseq"}, "train.rate or fairseq.block_lr, "},
        {{"train.strategy=pika"}, "train.rate or pika.block_lr, "},
        {{"train.strategy=average"}, "Lower train.rate, set sgd.clip, or"},
        {{"train.strategy=average", "sgd.clip=9"},
         "Lower train.rate or sgd.clip, or"},
        {{"train.strategy=ssgd"}, "Lower train.rate, set sgd.clip, or"},
    };
    problem p = {.workers = 1, .batch = BATCH, .poisoned = 1, .excess = 1e6};
    bm_comm *one = NULL;

    (void)state;
    assert_ok(bm_comm_open_alone(&one));
    FOR_EACH (i, cases) {
        job j = open_job(one, p, cases[i].settings);
        bm_block_report report;

        start_job(&j);
        for (int t = 0; t < 2; t++)
            assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
        assert_int_equal(bm_trainer_block(j.trainer, 0.25, &report),
                         BM_ERR_NUMERIC);
        assert_non_null(strstr(bm_last_message(), "checkpoints of earlier"));
        if (strstr(bm_last_message(), cases[i].lower) == NULL)
            fail_msg("%s: %s", cases[i].settings[0], bm_last_message());
        close_job(&j);
    }
    bm_comm_close(one);
}

static bm_status fail_on_the_last_rank(void *self, bm_params *params,
                                       int worker, int64_t step,
                                       double *samples)
{
    if (worker == WORKERS - 1)
        return BM_FAIL(BM_ERR_IO, "the disk is gone");
    return gradient(self, params, worker, step, samples);
}

/* A failure of arithmetic, which shows at the next sync. */
static bm_status fail_later_on_the_last_rank(void *self, bm_params *params,
                                             int worker, int64_t step,
                                             double *samples)
{
    if (worker == WORKERS - 1 && step == 1)
        bm_remember(params->be, BM_FAIL(BM_ERR_IO, "the disk is gone"));
    return gradient(self, params, worker, step, samples);
}

/* All ranks return the failure, and know which rank reports it. */
static void test_failure_of_one_rank_fails_all(void **state)
{
    static const char *const settings[][2] = {{"train.strategy=bmuf", NULL},
                                              {"train.strategy=ssgd", NULL},
                                              {"train.strategy=asgd", NULL},
                                              {"train.strategy=easgd", NULL}};
    bm_comm *comm = *state;

    FOR_EACH (i, settings)
        for (int later = 0; later < 2; later++) {
            bm_block_report report;
            job j = open_job(comm, even, settings[i]);
            bm_task task = {&j.problem,
                            move,
                            later ? fail_later_on_the_last_rank
                                  : fail_on_the_last_rank,
                            read_score,
                            count_steps,
                            epoch_size,
                            NULL,
                            NULL};

            assert_ok(bm_trainer_open(&j.trainer, j.config, j.comm, &j.params,
                                      &task));
            assert_int_equal(bm_trainer_block(j.trainer, 0.25, &report),
                             BM_ERR_IO);
            assert_non_null(strstr(bm_last_error(), "the disk is gone"));
            assert_int_equal(bm_comm_agreed(comm), bm_comm_size(comm) - 1);
            close_job(&j);
        }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_gradients_that_are_not_finite_are_skipped),
        TEST(test_a_model_of_easgd_that_is_not_finite_becomes_w),
        TEST(test_diverged_worker_is_left_out),
        TEST(test_longer_sequences_are_no_divergence),
        TEST(test_longer_sequences_are_judged_alike_after_a_halt),
        TEST(test_losses_of_shorter_sequences_need_not_fall),
        TEST(test_first_weights_are_not_judged),
        TEST(test_a_rise_in_the_first_block_is_divergence),
        TEST(test_worker_that_is_not_finite_is_left_out),
        TEST(test_loss_that_is_not_finite_ends_training_by_steps),
        TEST(test_a_block_without_usable_sequences_changes_nothing),
        TEST(test_small_losses_may_rise),
        TEST(test_divergence_of_all_workers_ends_training),
        TEST(test_the_message_names_the_rates_of_the_strategy),
        TEST(test_failure_of_one_rank_fails_all),
    };
    return RUN_GROUP_MPI("failures", tests);
}
