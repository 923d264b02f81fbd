/*
 * Audits: a bit that one rank gets wrong is found, by whoever computes the share
 * a second time; without an audit it is not. An audit changes no bit.
 */
#include "bmuf/trainer/audit.h"
#include "tests/support/reference/equations.h"
#include "tests/support/spans.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- which blocks -------------------------------------------------------- */

static void test_blocks_are_drawn_with_the_fraction(void **state)
{
    enum { MANY = 20000 };
    static const double fractions[] = {0, 0.01, 0.3, 1};

    (void)state;
    FOR_EACH (i, fractions) {
        bm_audit_settings set = {fractions[i], 5};
        double n = 0, sigma = sqrt(MANY * fractions[i] * (1 - fractions[i]));

        for (int64_t k = 0; k < MANY; k++)
            n += bm_audited(&set, (bm_position){k / 100, k % 100});
        assert_true(fabs(n - MANY * fractions[i]) <= 5 * sigma);
    }
}

static void test_other_seeds_draw_other_blocks(void **state)
{
    bm_audit_settings one = {0.5, 1}, other = {0.5, 2};
    int differ = 0;

    (void)state;
    for (int64_t k = 0; k < 1000; k++)
        differ += bm_audited(&one, (bm_position){0, k}) !=
                  bm_audited(&other, (bm_position){0, k});
    assert_true(differ > 400 && differ < 600);
}

static void test_each_worker_is_audited_by_one_other_rank(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 9; workers++)
        for (int ranks = 1; ranks <= workers; ranks++) {
            int seen[9] = {0};

            for (int rank = 0; rank < ranks; rank++) {
                int first = 0, last = 0;

                bm_audited_workers(workers, ranks, rank, &first, &last);
                for (int k = first; k < last; k++) {
                    seen[k]++;
                    assert_true(ranks == 1 ||
                                k < bm_first_worker(workers, ranks, rank) ||
                                k >= bm_first_worker(workers, ranks, rank + 1));
                }
            }
            for (int k = 0; k < workers; k++)
                assert_int_equal(seen[k], 1);
        }
}

/* ---- no trace ------------------------------------------------------------ */

/* The settings of a job, and those of an audit. */
static void add_audit(const char *const *settings, const char *out[8])
{
    int n = 0;

    for (; settings[n] != NULL; n++)
        out[n] = settings[n];
    out[n++] = "job.audit=0.5";
    out[n] = NULL;
}

static bool exchanges_by_blocks(const char *const *settings)
{
    return strcmp(settings[0], "train.strategy=bmuf") == 0 ||
           strcmp(settings[0], "train.strategy=average") == 0;
}

static void test_audits_change_no_bit(void **state)
{
    static result got, plain;
    const char *settings[8];

    for (size_t k = 0; k < KINDS; k++) {
        if (!exchanges_by_blocks(kinds[k]))
            continue;
        add_audit(kinds[k], settings);
        run_job(*state, k % 2 ? even : ragged, kinds[k], &plain);
        run_job(*state, k % 2 ? even : ragged, settings, &got);
        assert_memory_equal(&got, &plain, sizeof got);
    }
}

/* A worker that is left out is audited all the same, and found equal. */
static void test_results_that_are_not_finite_are_compared_too(void **state)
{
    static const char *const settings[] = {"train.strategy=bmuf",
                                           "job.audit=0.5", NULL};
    problem p = ragged;
    static result got;

    p.poisoned = 1 + 1;
    p.poison = 3e38;
    run_job(*state, p, settings, &got);
    assert_int_equal(got.left_out, 1);
}

/* ---- a flipped bit ------------------------------------------------------- */

/* The rank that gets a gradient wrong, and when. */
static struct fault {
    int rank, worker;
    bool again; /* each time; else the first time alone */
    bool done;
    int own; /* this rank */
} fault;

/* Flips a bit of an element. */
static bm_status flipping_gradient(void *self, bm_params *params, int worker,
                                   int64_t step, double *samples)
{
    const problem *p = self;
    uint32_t bits = 0;
    size_t i = 0;

    BM_TRY(gradient(self, params, worker, step, samples));
    if (fault.own != fault.rank || worker != fault.worker || fault.done ||
        p->at.block != 1 || step != 1 || *samples == 0)
        return BM_OK;
    fault.done = !fault.again;
    while (params->g[i] == 0)
        i++;
    memcpy(&bits, &params->g[i], sizeof bits);
    bits ^= 1U << 20; /* of the fraction: the weight changes by little */
    memcpy(&params->g[i], &bits, sizeof bits);
    return BM_OK;
}

static bm_status run_with_fault(bm_comm *comm, const char *const *settings,
                                int rank, int worker, bool again)
{
    problem p = {.workers = WORKERS, .batch = BATCH};
    job j = open_job(comm, p, settings);
    bm_task task = {&j.problem,  move,       flipping_gradient, read_score,
                    count_steps, epoch_size, is_audited,        NULL};
    bm_block_report report;
    bm_status status = BM_OK;

    fault = (struct fault){rank, worker, again, false, bm_comm_rank(comm)};
    assert_ok(bm_trainer_open(&j.trainer, j.config, j.comm, &j.params, &task));
    for (int t = 0; t < BLOCKS && status == BM_OK; t++)
        status = bm_trainer_block(j.trainer, 0.25, &report);
    if (status != BM_OK)
        assert_int_equal(bm_trainer_position(j.trainer).block, 1);
    close_job(&j);
    return status;
}

static int host_of(const bm_comm *comm, int worker)
{
    int rank = 0;

    while (bm_comm_first(comm, WORKERS, rank + 1) <= worker)
        rank++;
    return rank;
}

/* The message of every rank. */
static void assert_says(const char *words)
{
    if (strstr(bm_last_message(), words) == NULL)
        fail_msg("'%s' has no '%s'", bm_last_message(), words);
}

/* Both ranks that compute a share are wrong in turn. */
static void test_a_flipped_bit_is_found_and_its_rank_is_named(void **state)
{
    static const char *const ways[][5] = {
        {"train.strategy=bmuf", "job.audit=0.5"},
        {"train.strategy=bmuf", "job.audit=0.5", "sgd.momentum=0.5",
         "sgd.local_state=keep"},
        {"train.strategy=average", "job.audit=0.5", "sgd.update=adamw",
         "sgd.local_state=average"},
    };
    bm_comm *comm = *state;
    int ranks = bm_comm_size(comm);
    char words[80];

    FOR_EACH (i, ways)
        for (int worker = 0; worker < WORKERS; worker += 2)
            for (int who = 0; who < (ranks > 1 ? 2 : 1); who++) {
                int rank = (host_of(comm, worker) + who) % ranks;

                assert_int_equal(
                    run_with_fault(comm, ways[i], rank, worker, false),
                    BM_ERR_DEVICE);
                snprintf(words, sizeof words,
                         "share of worker %d in block 2 of epoch 1", worker);
                assert_says(words);
                assert_says(" of 2500 weights differ");
                snprintf(words, sizeof words, "computed again, rank %d on host",
                         rank);
                assert_says(words);
                assert_says("gets another result than before");
            }
}

static void test_a_rank_that_is_always_wrong_is_found(void **state)
{
    static const char *const settings[] = {"train.strategy=bmuf",
                                           "job.audit=0.5", NULL};
    bm_comm *comm = *state;

    if (bm_comm_size(comm) == 1) /* it agrees with itself */
        skip();
    assert_int_equal(run_with_fault(comm, settings, host_of(comm, 2), 2, true),
                     BM_ERR_DEVICE);
    assert_says("each gets its own result again");
}

static void test_without_an_audit_a_flipped_bit_is_not_found(void **state)
{
    static const char *const settings[] = {"train.strategy=bmuf", NULL};
    bm_comm *comm = *state;

    assert_ok(run_with_fault(comm, settings, host_of(comm, 2), 2, false));
}

/* ---- ranks that wait ----------------------------------------------------- */

/* Rank 0 is slow with its first worker. */
static bm_status slow_gradient(void *self, bm_params *params, int worker,
                               int64_t step, double *samples)
{
    static const struct timespec late = {0, 800000000};

    if (fault.own == 0 && worker == 0 && step == 1)
        nanosleep(&late, NULL);
    return gradient(self, params, worker, step, samples);
}

/* Each turn ends with a meeting of all ranks. */
static void test_ranks_that_wait_for_a_turn_do_not_look_stuck(void **state)
{
    static const char *const settings[] = {"train.strategy=bmuf", "job.audit=1",
                                           NULL};
    bm_comm *comm = *state;
    problem p = {.workers = WORKERS, .batch = BATCH};
    job j = open_job(comm, p, settings);
    bm_task task = {&j.problem,  move,       slow_gradient, read_score,
                    count_steps, epoch_size, is_audited,    NULL};
    bm_block_report report;
    double longest = 0;

    fault.own = bm_comm_rank(comm);
    assert_ok(bm_trainer_open(&j.trainer, j.config, j.comm, &j.params, &task));
    assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
    assert_ok(bm_comm_barrier(comm));
    spans_begin();
    assert_ok(bm_trainer_block(j.trainer, 0.25, &report));
    longest = spans_end();
    assert_int_equal(report.audited, WORKERS);
    assert_true(fault.own == 0 ? longest >= 0.8 : longest < 0.6);
    close_job(&j);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_are_drawn_with_the_fraction),
        cmocka_unit_test(test_other_seeds_draw_other_blocks),
        cmocka_unit_test(test_each_worker_is_audited_by_one_other_rank),
        TEST(test_audits_change_no_bit),
        TEST(test_results_that_are_not_finite_are_compared_too),
        TEST(test_a_flipped_bit_is_found_and_its_rank_is_named),
        TEST(test_a_rank_that_is_always_wrong_is_found),
        TEST(test_without_an_audit_a_flipped_bit_is_not_found),
        TEST(test_ranks_that_wait_for_a_turn_do_not_look_stuck),
    };
    return RUN_GROUP_MPI("audit", tests);
}
