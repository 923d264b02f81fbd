/* Ranks that are started by hand must have the same settings. */
#include "cli/train/run.h"
#include "tests/support/support.h"

#include <string.h>

/* Compares configurations of one setting each. */
static bm_status with(bm_comm *comm, const char *assignment)
{
    bm_config *config = NULL;
    bm_status status = BM_OK;

    assert_ok(bm_config_new(&config));
    assert_ok(bm_config_set(config, assignment));
    status = bm_run_same_settings(comm, config);
    bm_config_free(config);
    return status;
}

static void test_paths_and_threads_may_differ(void **state)
{
    bm_comm *comm = *state;
    bool first = bm_comm_rank(comm) == 0;

    assert_ok(with(comm, "train.rate=0.02"));
    assert_ok(with(comm, first ? "data.train=a" : "data.train=b"));
    assert_ok(with(comm, first ? "augment.reverb=a" : "augment.reverb=b"));
    assert_ok(with(comm, first ? "job.threads=1" : "job.threads=2"));
    assert_ok(with(comm, first ? "tune.trials=1" : "tune.trials=2"));
}

static void test_other_settings_are_refused_by_all(void **state)
{
    static const char *const pairs[][3] = {
        {"train.rate=0.02", "train.rate=0.01",
         "train.rate: 0.02 on rank 0, 0.01 here"},
        {"job.workers=2", "train.epochs=7",
         "train.epochs: 0 on rank 0, 7 here"},
        {"job.workers=2", "train.epochs=7", "job.workers: 2 on rank 0, 1 here"},
    };
    bm_comm *comm = *state;
    int size = bm_comm_size(comm), rank = bm_comm_rank(comm);

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        bool last = rank + 1 == size;
        bm_status status = with(comm, pairs[i][last && size > 1]);

        assert_int_equal(status, size > 1 ? BM_ERR_CONFIG : BM_OK);
        if (size > 1 && strstr(bm_last_message(), pairs[i][2]) == NULL)
            fail_msg("'%s' is not in: %s", pairs[i][2], bm_last_message());
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_paths_and_threads_may_differ),
        TEST(test_other_settings_are_refused_by_all),
    };

    return RUN_GROUP_MPI("same_settings", tests);
}
