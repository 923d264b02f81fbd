/* A run whose first blocks average gradients at every step: against ssgd, the
 * strategy that follows, and the equations of both in double. */
#include "tests/support/reference/equations.h"
#include "tests/support/reference/halts.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>

enum { ALL = EPOCHS * BLOCKS };

#define BMUF     "train.strategy=bmuf"
#define WARM_TWO "block.warmup=2"

static const char *const ways[][5] = {
    {BMUF, WARM_TWO, NULL},
    {BMUF, "block.warmup=3", "sgd.local_state=keep", "train.ema=0.75", NULL},
    {BMUF, WARM_TWO, "sgd.local_state=average", "job.sum=exact", NULL},
    {"train.strategy=average", WARM_TWO, "sgd.local_state=keep",
     "train.ema=0.5", NULL},
    {"train.strategy=slowmo", WARM_TWO, "job.coordinator=root", "train.ema=0.5",
     NULL},
};

static const char *const adam[][7] = {
    {BMUF, WARM_TWO, "sgd.update=adamw", "sgd.epsilon=1",
     "sgd.local_state=keep", NULL},
    {BMUF, WARM_TWO, "sgd.update=adamw", "sgd.epsilon=1",
     "sgd.local_state=extrapolate", NULL},
};

static void test_ranks_and_halts_change_no_bits(void **state)
{
    FOR_EACH (k, ways) {
        assert_ranks_change_no_bits(*state, ragged, ways[k]);
        assert_halts_change_no_bits(*state, ragged, ways[k]);
    }
    FOR_EACH (k, adam) {
        assert_ranks_change_no_bits(*state, ragged, adam[k]);
        assert_halts_change_no_bits(*state, ragged, adam[k]);
    }
}

static void test_warmup_alone_is_ssgd(void **state)
{
    static const char *const ssgd[] = {"train.strategy=ssgd", NULL};
    static const char *const exactly[] = {BMUF, "block.warmup=6", NULL};
    static const char *const longer[] = {BMUF, "block.warmup=100", NULL};
    static result got, expected;

    run_job(*state, ragged, ssgd, &expected);
    run_job(*state, ragged, exactly, &got);
    assert_memory_equal(&got, &expected, sizeof got);
    run_job(*state, ragged, longer, &got);
    assert_memory_equal(&got, &expected, sizeof got);
}

/* A run without warm-up that starts from the model of `until` after so many
 * blocks, with the local momentum in h for all workers. */
static void start_from(bm_comm *comm, const char *const *settings,
                       const result *until, int blocks, const halt *h,
                       result *out)
{
    job j = open_job(comm, ragged, settings);
    bm_state states[BM_STRATEGY_STATES + WORKERS * BM_SGD_STATES + 1];
    size_t n = 0;

    memcpy(j.params.w, until->model, sizeof until->model);
    start_job(&j);
    n = bm_trainer_state(j.trainer, states, bm_trainer_states(j.trainer));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < h->n; k++)
            if (strncmp(states[i].name, "sgd.v", 5) == 0 &&
                strcmp(h->states[k].name, "sgd.v") == 0)
                memcpy(states[i].x, h->states[k].x, N * sizeof(float));
    assert_ok(bm_trainer_resume(j.trainer, position_of(blocks), h->restart));
    *out = *until;
    run_blocks(&j, blocks, ALL, out);
    close_job(&j);
}

/* Without Delta, and with the local state that the policy keeps. */
static void test_strategy_starts_from_the_end_of_warmup(void **state)
{
    static const char *const policies[] = {"sgd.local_state=reset",
                                           "sgd.local_state=keep",
                                           "sgd.local_state=average"};
    static result got, expected, until;

    FOR_EACH (k, policies)
        for (int warmup = 1; warmup < ALL; warmup += 2) {
            char blocks[40];
            const char *const whole[] = {BMUF, policies[k], blocks, NULL};
            const char *const ssgd[] = {"train.strategy=ssgd", NULL};
            const char *const after[] = {BMUF, policies[k], NULL};
            job j = open_job(*state, ragged, ssgd);
            halt h = {0};

            snprintf(blocks, sizeof blocks, "block.warmup=%d", warmup);
            run_job(*state, ragged, whole, &got);
            memset(&until, 0, sizeof until);
            start_job(&j);
            run_blocks(&j, 0, warmup, &until);
            save_job(&j, warmup, &h);
            close_job(&j);
            start_from(*state, after, &until, warmup, &h, &expected);
            assert_memory_equal(&got, &expected, sizeof got);
            free_halt(&h);
        }
}

/* Blocks of steps, in double: w, and the one velocity. */
static void warm_up(const problem *p, int blocks, double mu, double *w,
                    double *v)
{
    static double g[N], mean[N];

    for (int t = 0; t < blocks; t++)
        for (int64_t step = 0;; step++) {
            double total = 0;

            memset(mean, 0, sizeof mean);
            for (int k = 0; k < p->workers; k++) {
                double n = gradient_of(p, position_of(t), k, step, w, g);
                for (int i = 0; i < N; i++)
                    mean[i] += n * g[i];
                total += n;
            }
            if (total == 0)
                break;
            for (int i = 0; i < N; i++) {
                v[i] = mu * v[i] - 0.25 * mean[i] / total;
                w[i] += v[i];
            }
        }
}

/* Two blocks of warm-up, then bmuf with Nesterov momentum, whose workers keep
 * their local momentum. */
static void test_warmup_follows_its_equations_in_double(void **state)
{
    static const char *const settings[] = {BMUF,
                                           WARM_TWO,
                                           STEADY,
                                           "bmuf.momentum=0.75",
                                           "bmuf.rate=0.875",
                                           "sgd.momentum=0.5",
                                           "sgd.local_state=keep",
                                           NULL};
    static double start_[N], model[N], delta[N], w[N], mean[N], v[WORKERS][N];
    static result got;

    memset(model, 0, sizeof model);
    memset(delta, 0, sizeof delta);
    memset(v, 0, sizeof v);
    warm_up(&ragged, 2, 0.5, model, v[0]);
    for (int k = 1; k < WORKERS; k++)
        memcpy(v[k], v[0], sizeof v[k]);
    memcpy(start_, model, sizeof start_);
    for (int t = 2; t < ALL; t++) {
        double total = 0;

        memset(mean, 0, sizeof mean);
        for (int k = 0; k < WORKERS; k++) {
            double n = (double)share(&ragged, position_of(t), k);
            memcpy(w, start_, sizeof w);
            learn_share(&ragged, position_of(t), k, 0.5, 0.25, w, v[k]);
            for (int i = 0; i < N; i++)
                mean[i] += n * (w[i] - start_[i]);
            total += n;
        }
        for (int i = 0; i < N; i++) {
            delta[i] = 0.75 * delta[i] + 0.875 * mean[i] / total;
            model[i] += delta[i];
            start_[i] = model[i] + 0.75 * delta[i];
        }
    }
    run_job(*state, ragged, settings, &got);
    for (int i = 0; i < N; i++)
        assert_true(near(got.model[i], model[i], 1e-6));
}

/* The average of models is one through both phases. */
static void test_ema_continues_through_both_phases(void **state)
{
    static const char *const settings[] = {BMUF, WARM_TWO, "train.ema=0.75",
                                           NULL};
    static double expected[N];
    static float model[N], got[N];
    job j = open_job(*state, ragged, settings);

    start_job(&j);
    memset(expected, 0, sizeof expected);
    for (int t = 0; t < ALL; t++) {
        bm_block_report report;

        assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
        assert_ok(bm_trainer_global(j.trainer, model));
        assert_ok(bm_trainer_ema(j.trainer, got));
        for (int i = 0; i < N; i++) {
            expected[i] = 0.75 * expected[i] + 0.25 * model[i];
            assert_true(near(got[i], expected[i], 1e-6));
        }
    }
    close_job(&j);
}

/* In the warm-up all workers share one loss; after it each has its own. */
static void test_divergence_is_judged_as_in_the_phase(void **state)
{
    static const char *const early[] = {BMUF, "block.warmup=3", NULL};
    static const char *const late[] = {BMUF, WARM_TWO, NULL};
    problem p = ragged;
    bm_block_report report;
    static result got;
    job j;

    p.poisoned = 1 + 1; /* in block 2 */
    p.poison = p.excess = 1e6;
    run_job(*state, p, late, &got);
    assert_int_equal(got.left_out, 1);
    j = open_job(*state, p, early);
    start_job(&j);
    assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
    assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
    assert_int_equal(bm_trainer_block(j.trainer, 0.25, &report),
                     BM_ERR_NUMERIC);
    close_job(&j);
}

/* Which a checkpoint between the phases has, too. */
static void test_rate_of_the_last_block_outlives_warmup(void **state)
{
    static const char *const settings[] = {BMUF, WARM_TWO, NULL};
    static result r;
    job j = open_job(*state, ragged, settings);

    start_job(&j);
    run_blocks(&j, 0, 2, &r);
    assert_true(bm_trainer_numbers(j.trainer).rate == rate_of(&ragged, 1));
    close_job(&j);
}

/* A strategy that cannot be opened after the warm-up is reported before it. */
static void test_second_phase_is_opened_before_training(void **state)
{
    static const char *const settings[] = {"train.strategy=average", WARM_TWO,
                                           "sgd.update=adamw",
                                           "sgd.local_state=extrapolate", NULL};
    job j = open_job(*state, even, settings);
    bm_task task = {&j.problem,  move,       gradient, read_score,
                    count_steps, epoch_size, NULL,     NULL};

    assert_int_equal(
        bm_trainer_open(&j.trainer, j.config, j.comm, &j.params, &task),
        BM_ERR_CONFIG);
    close_job(&j);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_ranks_and_halts_change_no_bits),
        TEST(test_warmup_alone_is_ssgd),
        TEST(test_strategy_starts_from_the_end_of_warmup),
        TEST(test_warmup_follows_its_equations_in_double),
        TEST(test_ema_continues_through_both_phases),
        TEST(test_divergence_is_judged_as_in_the_phase),
        TEST(test_rate_of_the_last_block_outlives_warmup),
        TEST(test_second_phase_is_opened_before_training),
    };
    return RUN_GROUP_MPI("warmup", tests);
}
