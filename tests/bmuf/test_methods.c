/*
 * Every strategy, alone and with the options that it goes with: the same bits
 * on any number of ranks, and stopped and gone on with after any block, while
 * the learning rate falls and some shares are empty.
 */
#include "tests/support/equations.h"
#include "tests/support/halts.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>

#define ADAM "sgd.update=adamw", "sgd.epsilon=1"
#define KEEP "sgd.local_state=keep"
#define EMA  "train.ema=0.5"
#define WARM "block.warmup=1"

/* A strategy, and settings. */
static const char *const methods[][8] = {
    {"local", EMA, "sgd.momentum=0.5"},
    {"local", ADAM},
    {"average", EMA},
    {"average", "compress.code=topk", EMA, WARM},
    {"bmuf", "bmuf.rescale=yes", EMA},
    {"bmuf", "bmuf.rescale=yes", "job.sum=ring", KEEP},
    {"bmuf", "job.sum=halving", "sgd.local_state=average", WARM},
    {"bmuf", "job.sum=hier", "job.topology=5x1", EMA},
    {"bmuf", ADAM, "sgd.local_state=extrapolate", "compress.code=int8", EMA},
    {"bmuf", WARM, "ssgd.overlap=bucket", "ssgd.bucket=0.004", ADAM, KEEP},
    {"slowmo", EMA},
    {"slowmo", "compress.code=onebit", WARM, KEEP},
    {"slowmo", "block.fragments=2", "block.overlap=yes", WARM},
    {"diloco", ADAM, KEEP},
    {"diloco", ADAM, KEEP, "block.fragments=3", EMA},
    {"diloco", ADAM, KEEP, "compress.code=bf16"},
    {"lookahead"},
    {"lookahead", "block.overlap=yes", KEEP},
    {"cntk", "cntk.nesterov=yes", EMA},
    {"cntk", "cntk.nesterov=no", "block.overlap=yes"},
    {"fairseq", "fairseq.use_nbm=yes", KEEP},
    {"fairseq", "sgd.local_state=average", "compress.code=fp16"},
    {"pika", ADAM, "sgd.local_state=extrapolate", WARM},
    {"ssgd", EMA, "job.coordinator=root"},
    {"ssgd", ADAM, "ssgd.overlap=layer", "job.sum=exact"},
    {"ssgd", "sgd.momentum=0.5", "job.sum=hier", "job.topology=5"},
    {"onebit", EMA, ADAM},
    {"onebit", WARM, "job.coordinator=root", "sgd.momentum=0.5"},
    {"asgd", EMA, "sgd.momentum=0.5", "asgd.scaling=power", "asgd.power=0.3"},
    {"asgd", ADAM, WARM, "asgd.push_every=2", "asgd.fetch_every=2"},
    {"asgd", ADAM, KEEP, EMA, "asgd.update=local", "asgd.push_every=2",
     "asgd.fetch_every=4"},
    {"softsync", EMA, WARM, "softsync.n=2", "softsync.scaling=inverse"},
    {"softsync", ADAM, "clock.times=1 2 3 1 2", "softsync.n=3"},
    {"easgd", EMA, "sgd.momentum=0.5", "clock.times=1 1 1 1 4"},
    {"easgd", ADAM, WARM, "easgd.period=2", "job.coordinator=root"},
};

enum { MOST = sizeof methods[0] / sizeof methods[0][0] };

/* "train.strategy=<name>" and its settings, ending with NULL. */
static const char *const *settings_of(const char *const *method)
{
    enum { OURS = 3 };
    static char strategy[40];
    static const char *all[OURS + MOST] = {strategy, STEADY,
                                           "sgd.momentum=0.25"};

    snprintf(strategy, sizeof strategy, "train.strategy=%s", method[0]);
    for (size_t i = 1; i < MOST; i++)
        all[OURS + i - 1] = method[i];
    return all;
}

/* Of a single worker, and so on a single rank, if there can be no other. */
static problem problem_of(const char *const *method)
{
    problem p = ragged;

    p.cooling = true;
    if (strcmp(method[0], "local") == 0) {
        p.workers = 1;
        p.ragged = false; /* or a block would be empty */
    }
    return p;
}

static void test_none_is_forgotten(void **state)
{
    const bm_strategy_ops *const *s = bm_strategy_list();

    (void)state;
    for (; *s != NULL; s++) {
        size_t rows = 0;

        FOR_EACH (k, methods)
            rows += strcmp(methods[k][0], (*s)->name) == 0;
        assert_true(rows > 0);
    }
}

static void test_ranks_change_no_bits(void **state)
{
    FOR_EACH (k, methods) {
        problem p = problem_of(methods[k]);

        if (p.workers >= bm_comm_size(*state))
            assert_ranks_change_no_bits(*state, p, settings_of(methods[k]));
    }
}

/* That numbers of ranks may change meanwhile is shown by whole runs. */
static void test_halts_change_no_bits(void **state)
{
    bm_comm *one = NULL;

    if (bm_comm_size(*state) % 2 == 0)
        return; /* one and three will do */
    assert_ok(bm_comm_open_alone(&one));
    FOR_EACH (k, methods) {
        problem p = problem_of(methods[k]);
        bm_comm *comm = p.workers < bm_comm_size(*state) ? one : *state;

        assert_halts_change_no_bits(comm, p, settings_of(methods[k]));
    }
    bm_comm_close(one);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_none_is_forgotten),
        TEST(test_ranks_change_no_bits),
        TEST(test_halts_change_no_bits),
    };
    return RUN_GROUP_MPI("methods", tests);
}
