#include "comm/comm.h"
#include "tests/support/support.h"

#include <mpi.h>
#include <stdio.h>

int run_group_mpi(const char *name, const struct CMUnitTest *tests, size_t n)
{
    int rank = 0, failed = 0, worst = 0, threads = 0;

    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0 && freopen("/dev/null", "w", stdout) == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    /* What the cmocka_run_group_tests macro calls, for an array by pointer. */
    failed = _cmocka_run_group_tests(name, tests, n, NULL, NULL);
    MPI_Allreduce(&failed, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return worst != 0;
}

int open_comm(void **state)
{
    bm_comm *comm = NULL;

    assert_ok(bm_comm_open(&comm));
    *state = comm;
    return 0;
}

int close_comm(void **state)
{
    bm_comm_close(*state);
    return 0;
}
