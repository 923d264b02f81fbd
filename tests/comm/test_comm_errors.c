/* What ranks learn of an error of MPI in a transfer that was under way. In a
 * program of its own, as the communicator is of no use after it. */
#include "comm/comm.h"
#include "tests/support/support.h"

/* Rank 0 gets more bytes than it has room for. Open MPI reports errors that it
 * finds while it waits to the handler of MPI_COMM_WORLD, which aborts by
 * default. */
static void test_an_error_in_a_wait_is_returned(void **state)
{
    char x[64] = {0};
    bool first = false;
    bm_comm *comm = NULL;
    bm_status status = BM_OK;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    first = bm_comm_rank(comm) == 0;
    status = bm_comm_broadcast_bytes(comm, x, first ? 2 : sizeof x, 1);
    assert_int_equal(status, first ? BM_ERR_COMM : BM_OK);
    bm_comm_close(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_error_in_a_wait_is_returned),
    };
    return RUN_GROUP("comm_errors", tests);
}
