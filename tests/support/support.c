#include "tests/support/support.h"

#include "comm/comm.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void *zeros(size_t n, size_t size)
{
    void *x = calloc(n + 1, size);

    if (x == NULL)
        abort();
    return x;
}

uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

double uniform(uint64_t key)
{
    return (double)(mix(mix(key + 1)) >> 11) * 0x1p-53;
}

bool near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fmax(1.0, fabs(b));
}

uint64_t seed_of_the_day(void)
{
    const char *given = getenv("BMUF_TEST_SEED");
    unsigned long seed =
        given != NULL ? strtoul(given, NULL, 10) : (unsigned long)time(NULL);

    print_message("BMUF_TEST_SEED=%lu repeats this\n", seed);
    return seed;
}

void assert_ok_at(bm_status status, const char *text, const char *file,
                  int line)
{
    if (status == BM_OK)
        return;
    print_error("%s: %s\n", text, bm_last_error());
    _fail(file, line);
}

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
