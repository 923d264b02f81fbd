/*
 * One rank alone has no memory, at each allocation in turn, while a strategy or
 * a trainer is opened: all ranks fail together, and none waits for another.
 */
#include "bmuf/strategies/fragments.h"
#include "tests/support/reference/equations.h"
#include "tests/support/support.h"

#include <stdlib.h>

/* Allocations until one fails; negative: none does. */
static int left = -1;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

static bool fails(void)
{
    return left >= 0 && left-- == 0;
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

/* What is opened. */
typedef struct way {
    const char *strategy;
    bool in_fragments;
    const char *settings[2]; /* ending with NULL */
} way;

/* Opens and closes a strategy; allocation k of the last rank fails. *reached:
 * there was one. */
static bm_status open_with_failure(bm_comm *comm, const job *j, int k,
                                   const way *w, bool *reached)
{
    bm_strategy *s = NULL;
    bm_status status = BM_OK;
    bool last = bm_comm_rank(comm) + 1 == bm_comm_size(comm);

    left = last ? k : -1;
    status = w->in_fragments ? bm_fragments_open(&s, w->strategy, j->config,
                                                 comm, (bm_params *)&j->params)
                             : bm_strategy_open(&s, w->strategy, j->config,
                                                comm, (bm_params *)&j->params);
    *reached = left < 0;
    left = -1;
    bm_strategy_close(s);
    return status;
}

static void test_ranks_fail_together(void **state)
{
    static const way ways[] = {
        {"bmuf", false, {"compress.code=fp16"}},
        {"average", false, {"compress.code=int8"}},
        {"bmuf", true, {"block.fragments=2"}},
    };
    bm_comm *comm = *state;

    FOR_EACH (i, ways) {
        job j = open_job(comm, even, ways[i].settings);
        int all = 1, failures = 0;

        for (int k = 0; all != 0; k++) {
            bool reached = false;
            bm_status status =
                open_with_failure(comm, &j, k, &ways[i], &reached);
            int ok[2] = {status == BM_OK, status != BM_OK};

            assert_ok(bm_comm_max(comm, ok, 2));
            assert_int_equal(ok[0] + ok[1], 1); /* all or none */
            assert_true(status == BM_OK || status == BM_ERR_MEMORY);
            all = reached && bm_comm_rank(comm) + 1 == bm_comm_size(comm);
            assert_ok(bm_comm_max(comm, &all, 1));
            assert_true(all != 0 || status == BM_OK);
            failures += status != BM_OK;
        }
        assert_true(failures > 5);
        close_job(&j);
    }
}

/* The same of a whole trainer. */
static bm_status open_trainer_with_failure(job *j, int k, bool *reached)
{
    bm_task task = {&j->problem, move,       gradient,   read_score,
                    count_steps, epoch_size, is_audited, NULL};
    bool last = bm_comm_rank(j->comm) + 1 == bm_comm_size(j->comm);
    bm_status status = BM_OK;

    left = last ? k : -1;
    status =
        bm_trainer_open(&j->trainer, j->config, j->comm, &j->params, &task);
    *reached = left < 0;
    left = -1;
    bm_trainer_close(j->trainer);
    j->trainer = NULL;
    return status;
}

/* Each allocation of the last rank fails in turn, until there is none left. */
static void check_trainer(job *j)
{
    bm_comm *comm = j->comm;
    int failures = 0;

    for (int k = 0, all = 1; all != 0; k++) {
        bool reached = false;
        bm_status status = open_trainer_with_failure(j, k, &reached);
        int ok[2] = {status == BM_OK, status != BM_OK};

        assert_ok(bm_comm_max(comm, ok, 2));
        assert_int_equal(ok[0] + ok[1], 1); /* all or none */
        all = reached && bm_comm_rank(comm) + 1 == bm_comm_size(comm);
        assert_ok(bm_comm_max(comm, &all, 1));
        assert_true(all != 0 || status == BM_OK);
        failures += status != BM_OK;
    }
    assert_true(failures > 5);
}

static void test_ranks_that_open_a_trainer_fail_together(void **state)
{
    static const char *const ways[][5] = {
        {"train.strategy=bmuf", "block.warmup=2", "train.ema=0.5",
         "job.audit=0.5", NULL},
        {"train.strategy=asgd", "asgd.update=local", "train.ema=0.5", NULL},
        {"train.strategy=ssgd", "ssgd.overlap=layer", NULL},
        {"train.strategy=average", "compress.code=int8", NULL},
    };

    FOR_EACH (i, ways) {
        job j = open_job(*state, even, ways[i]);

        check_trainer(&j);
        close_job(&j);
    }
}

/* Each rank carries a worker, and opens a part of the server. */
static void test_ranks_that_open_a_server_fail_together(void **state)
{
    static const char *const settings[] = {"train.strategy=asgd",
                                           "clock.kind=real", NULL};
    const problem p = {.workers = bm_comm_size(*state), .batch = BATCH};
    job j = open_job(*state, p, settings);

    check_trainer(&j);
    close_job(&j);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_ranks_fail_together),
        TEST(test_ranks_that_open_a_trainer_fail_together),
        TEST(test_ranks_that_open_a_server_fail_together),
    };

    return RUN_GROUP_MPI("lone_failures", tests);
}
