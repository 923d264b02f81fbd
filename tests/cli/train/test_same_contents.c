/* What ranks have read is compared, and all of them learn which ones differ. */
#include "cli/train/same_contents.h"
#include "tests/support/support.h"

#include <string.h>

static void says(const char *words)
{
    if (strstr(bm_last_message(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, bm_last_message());
}

static void test_equal_contents_may_have_any_path(void **state)
{
    bm_comm *comm = *state;
    bool first = bm_comm_rank(comm) == 0;

    assert_ok(bm_same_contents(comm, "data.dev", first ? "a" : "b", "12ab"));
    assert_ok(bm_same_contents(comm, "data.dev", "", ""));
}

static void test_all_ranks_that_differ_are_named(void **state)
{
    bm_comm *comm = *state;
    int rank = bm_comm_rank(comm), size = bm_comm_size(comm);
    bm_status status =
        bm_same_contents(comm, "data.train", "set", rank < 1 ? "12ab" : "34cd");

    if (size == 1) {
        assert_ok(status);
        return;
    }
    assert_int_equal(status, BM_ERR_CONFIG);
    if (rank > 1) /* which has a message of its own */
        return;
    says("data.train: rank 1 (host ");
    says("read set with digest 34cd, but rank 0 (host ");
    says(size == 2 ? "read set with digest 12ab; give all ranks"
                   : "read set with digest 12ab; rank 2 (host ");
    if (size == 3)
        says(") differs from rank 0, too; give all ranks");
    if (size == 7)
        says(") and 1 more differ from rank 0, too; give all ranks");
}

static void test_contents_of_one_rank_alone_are_refused(void **state)
{
    bm_comm *comm = *state;
    bool last = bm_comm_rank(comm) + 1 == bm_comm_size(comm);
    bm_status status =
        bm_same_contents(comm, "data.dev", "set", last ? "12ab" : "");

    if (bm_comm_size(comm) == 1) {
        assert_ok(status);
        return;
    }
    assert_int_equal(status, BM_ERR_CONFIG);
    says(") read nothing; give all ranks");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)
    const struct CMUnitTest tests[] = {
        TEST(test_equal_contents_may_have_any_path),
        TEST(test_all_ranks_that_differ_are_named),
        TEST(test_contents_of_one_rank_alone_are_refused),
    };

    return RUN_GROUP_MPI("same_contents", tests);
}
