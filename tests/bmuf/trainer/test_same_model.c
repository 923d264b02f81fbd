/*
 * A bit of the model that one rank has wrong: found by all ranks, with every
 * strategy whose ranks repeat the update.
 */
#include "tests/support/reference/equations.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>

static const char *const ways[][5] = {
    {"train.strategy=ssgd", NULL},
    {"train.strategy=ssgd", "ssgd.overlap=layer", "sgd.update=adamw",
     "sgd.epsilon=1", NULL},
    {"train.strategy=onebit", NULL},
    {"train.strategy=bmuf", "block.warmup=9", NULL},
    {"train.strategy=asgd", NULL},
    {"train.strategy=softsync", NULL},
    {"train.strategy=easgd", NULL},
};

static void train_blocks(job *j, int n)
{
    for (int t = 0; t < n; t++) {
        bm_block_report report;

        assert_ok(bm_trainer_block(j->trainer, 0.25, &report));
    }
}

/* On one rank. Flips the last bit of a weight; a difference that later updates do
 * not round away. */
static void spoil(job *j, int rank, bool much)
{
    float *w = &j->params.w[N - 1];
    uint32_t bits = 0;

    if (bm_comm_rank(j->comm) != rank)
        return;
    memcpy(&bits, w, sizeof bits);
    bits ^= 1;
    memcpy(w, &bits, sizeof bits);
    *w += much ? 0.01F : 0;
}

static void assert_says(const char *words)
{
    if (strstr(bm_last_message(), words) == NULL)
        fail_msg("'%s' has no '%s'", bm_last_message(), words);
}

/* On every rank. */
static void assert_found(job *j, int rank, int blocks)
{
    int ranks = bm_comm_size(j->comm);
    char words[100];

    assert_int_equal(bm_trainer_compare(j->trainer),
                     ranks > 1 ? BM_ERR_DEVICE : BM_OK);
    if (ranks == 1)
        return;
    snprintf(words, sizeof words,
             "after block %d of epoch 1 the model of rank ", blocks);
    assert_says(words);
    snprintf(words, sizeof words, "rank %d on host ", rank);
    assert_says(words);
    assert_says(ranks > 2 ? "memory of the rank that differs"
                          : "memory of either");
    snprintf(words, sizeof words, ", which %d of %d ranks have",
             ranks - (ranks > 1), ranks);
    assert_says(words);
    if (ranks > 2) { /* the others are right */
        snprintf(words, sizeof words, "the model of rank %d on", rank);
        assert_says(words);
    }
}

static void test_a_bit_of_one_rank_is_found_by_all(void **state)
{
    bm_comm *comm = *state;

    FOR_EACH (k, ways)
        for (int rank = 0; rank < bm_comm_size(comm); rank++) {
            job j = open_job(comm, even, ways[k]);

            start_job(&j);
            train_blocks(&j, 1);
            assert_ok(bm_trainer_compare(j.trainer));
            spoil(&j, rank, false);
            assert_found(&j, rank, 1);
            spoil(&j, rank, true);
            train_blocks(&j, 1);
            assert_found(&j, rank, 2);
            close_job(&j);
        }
}

/* A difference in the last block of a warm-up, after which ranks would take slices
 * of models that differ. */
static void test_a_phase_does_not_end_with_two_models(void **state)
{
    static const char *const warm[] = {"train.strategy=bmuf", "block.warmup=2",
                                       NULL};
    bm_comm *comm = *state;
    bm_block_report report;
    job j = open_job(comm, even, warm);

    start_job(&j);
    train_blocks(&j, 1);
    spoil(&j, 0, true);
    assert_int_equal(bm_trainer_block(j.trainer, 0.25, &report),
                     bm_comm_size(comm) > 1 ? BM_ERR_DEVICE : BM_OK);
    close_job(&j);
}

/* Per block they get the model from each other. */
static void test_ranks_that_exchange_models_need_no_comparison(void **state)
{
    static const char *const blocks[] = {"train.strategy=bmuf", NULL};
    job j = open_job(*state, even, blocks);

    start_job(&j);
    train_blocks(&j, 1);
    spoil(&j, 0, true);
    assert_ok(bm_trainer_compare(j.trainer));
    close_job(&j);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_a_bit_of_one_rank_is_found_by_all),
        TEST(test_a_phase_does_not_end_with_two_models),
        TEST(test_ranks_that_exchange_models_need_no_comparison),
    };
    return RUN_GROUP_MPI("same model", tests);
}
