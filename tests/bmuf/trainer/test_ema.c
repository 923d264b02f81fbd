/* The average of global models, against its recurrence on the models that a
 * trainer leaves block by block. */
#include "tests/support/reference/equations.h"
#include "tests/support/support.h"

#include <stdlib.h>
#include <string.h>

static const char *const ways[][4] = {
    {"train.strategy=bmuf", "train.ema=0.75", NULL},
    {"train.strategy=average", "train.ema=0.75", NULL},
    {"train.strategy=ssgd", "train.ema=0.75", NULL},
    {"train.strategy=onebit", "train.ema=0.75", NULL},
    {"train.strategy=asgd", "train.ema=0.75", "sgd.momentum=0.5", NULL},
    {"train.strategy=easgd", "train.ema=0.75", "sgd.momentum=0.5", NULL},
};

/* Blocks from .. to; `expected` is updated in place. */
static void run(job *j, int from, int to, double *expected, float *got)
{
    static float model[N];

    for (int t = from; t < to; t++) {
        bm_block_report report;

        assert_ok(bm_trainer_block(j->trainer, 0.25, &report));
        assert_ok(bm_trainer_global(j->trainer, model));
        assert_ok(bm_trainer_ema(j->trainer, got));
        for (int i = 0; i < N; i++) {
            expected[i] = 0.75 * expected[i] + 0.25 * model[i];
            assert_true(near(got[i], expected[i], 1e-6));
        }
    }
}

static void test_ema_follows_its_recurrence(void **state)
{
    static float together[N], alone[N];
    bm_comm *one = NULL;

    assert_ok(bm_comm_open_alone(&one));
    FOR_EACH (k, ways) {
        bm_comm *comms[] = {*state, one};

        FOR_EACH (c, comms) {
            static double expected[N];
            job j = open_job(comms[c], ragged, ways[k]);

            start_job(&j);
            memset(expected, 0, sizeof expected);
            run(&j, 0, EPOCHS * BLOCKS, expected, c == 0 ? together : alone);
            close_job(&j);
        }
        assert_memory_equal(together, alone, sizeof alone);
    }
    bm_comm_close(one);
}

static void test_resumed_ema_has_the_same_bits(void **state)
{
    static float got[2][N], kept[STATES][N];
    static double expected[N];

    FOR_EACH (k, ways) {
        job j[2] = {open_job(*state, ragged, ways[k]),
                    open_job(*state, ragged, ways[k])};
        bm_state states[STATES];
        size_t n = 0;

        start_job(&j[0]);
        memset(expected, 0, sizeof expected);
        run(&j[0], 0, 2, expected, got[0]);
        n = bm_trainer_state(j[0].trainer, states, STATES);
        assert_string_equal(states[n - 1].name, "ema");
        for (size_t i = 0; i < n; i++)
            memcpy(kept[i], states[i].x, states[i].count * sizeof(float));
        start_job(&j[1]);
        assert_int_equal(bm_trainer_state(j[1].trainer, states, STATES), n);
        for (size_t i = 0; i < n; i++)
            memcpy(states[i].x, kept[i], states[i].count * sizeof(float));
        assert_ok(bm_trainer_resume(j[1].trainer,
                                    bm_trainer_position(j[0].trainer),
                                    bm_trainer_numbers(j[0].trainer)));
        for (int i = 0; i < 2; i++) {
            static double going_on[N];
            memcpy(going_on, expected, sizeof going_on);
            run(&j[i], 2, EPOCHS * BLOCKS, going_on, got[i]);
            close_job(&j[i]);
        }
        assert_memory_equal(got[0], got[1], sizeof got[0]);
    }
}

static void test_ema_changes_no_bits_of_training(void **state)
{
    static result with, without;

    FOR_EACH (k, ways) {
        const char *const plain[] = {ways[k][0], ways[k][2], NULL};

        run_job(*state, ragged, ways[k], &with);
        run_job(*state, ragged, plain, &without);
        assert_memory_not_equal(with.ema, without.ema, sizeof with.ema);
        memset(with.ema, 0, sizeof with.ema);
        assert_memory_equal(&with, &without, sizeof with);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_ema_follows_its_recurrence),
        TEST(test_resumed_ema_has_the_same_bits),
        TEST(test_ema_changes_no_bits_of_training),
    };
    return RUN_GROUP_MPI("ema", tests);
}
