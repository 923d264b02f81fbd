/*
 * support.h - what every test program shares. Include it instead of cmocka.h.
 *
 * A test is a function test_<what>_<is expected>. A program that runs its group
 * with RUN_GROUP_MPI checks the same claims on every rank, however many mpirun
 * starts. ctest sets CMOCKA_TEST_ABORT, so that a claim that fails on one rank
 * ends the job at once instead of leaving the others in a collective.
 */
#ifndef BM_TESTS_SUPPORT_SUPPORT_H
#define BM_TESTS_SUPPORT_SUPPORT_H

#include "core/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* ctest's SKIP_RETURN_CODE: the machine lacks what the program needs. */
#define SKIPPED 77

/* Fails with bm_last_error() unless the call returns BM_OK. */
#define assert_ok(call) assert_ok_at((call), #call, __FILE__, __LINE__)

/* x counts through an array. */
#define FOR_EACH(x, array)                                                     \
    for (size_t x = 0; x < sizeof(array) / sizeof((array)[0]); x++)

/* n of them, and one more; never NULL. */
void *zeros(size_t n, size_t size);

/* A hash, and number `key` of a stream of uniform numbers in [0, 1). */
uint64_t mix(uint64_t x);
double uniform(uint64_t key);

/* |a - b| <= tolerance * max(1, |b|), and neither is NaN. */
bool near(double a, double b, double tolerance);

/* The clock's, or BMUF_TEST_SEED of the environment; printed. */
uint64_t seed_of_the_day(void);

void assert_ok_at(bm_status status, const char *text, const char *file,
                  int line);

/* Runs the group on every rank; rank 0 prints. The exit status of main. */
int run_group_mpi(const char *name, const struct CMUnitTest *tests, size_t n);

/* Setup and teardown of a test: its state is the comm of all ranks. */
int open_comm(void **state);
int close_comm(void **state);

#define RUN_GROUP(name, tests) cmocka_run_group_tests_name(name, tests, 0, 0)
#define RUN_GROUP_MPI(name, tests)                                             \
    run_group_mpi(name, tests, sizeof(tests) / sizeof((tests)[0]))

#endif
