/* What bm_comm_open leaves behind if it fails. In a program of its own, as MPI
 * starts once. */
#include "comm/comm.h"
#include "tests/support/support.h"

#include <mpi.h>
#include <string.h>

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

/* Fails on the last rank for what has 16 bytes for each rank. */
void *__wrap_calloc(size_t n, size_t size)
{
    int running = 0, rank = 0, ranks = 0;

    MPI_Initialized(&running);
    if (!running || size != 2 * sizeof(double))
        return __real_calloc(n, size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return n == (size_t)ranks && rank == ranks - 1 ? NULL
                                                   : __real_calloc(n, size);
}

/* Without MPI_Finalize mpirun would report that in place of the cause. */
static void test_a_failure_on_one_rank_finalizes_mpi_on_all(void **state)
{
    bm_comm *comm = NULL;
    int finalized = 0;

    (void)state;
    assert_int_equal(bm_comm_open(&comm), BM_ERR_MEMORY);
    assert_null(comm);
    assert_non_null(strstr(bm_last_error(), "no memory for "));
    MPI_Finalized(&finalized);
    assert_true(finalized);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_failure_on_one_rank_finalizes_mpi_on_all),
    };
    return RUN_GROUP("comm_open", tests);
}
