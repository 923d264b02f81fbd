/*
 * support.h - common to all test programs. Include it instead of cmocka.h.
 *
 * A test is a function test_<what>_<is expected>. A program that runs its group
 * with RUN_GROUP_MPI makes the same assertions on every rank. ctest sets
 * CMOCKA_TEST_ABORT, so that a failed assertion on one rank ends the job
 * instead of leaving the others in a collective.
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

/* A failed assertion does not return, which clang's analyzer cannot see. */
#ifdef __clang_analyzer__
#include <stdlib.h>
#define _assert_true(c, ...) ((c) ? (void)0 : abort())
#endif

/* ctest's SKIP_RETURN_CODE: the machine cannot run this program. */
#define SKIPPED 77

/* Fails with bm_last_error() unless the call returns BM_OK. */
#define assert_ok(call) assert_ok_at((call), #call, __FILE__, __LINE__)

/* Loops over the indices x of an array. */
#define FOR_EACH(x, array)                                                     \
    for (size_t x = 0; x < sizeof(array) / sizeof((array)[0]); x++)

/* n + 1 zeroed elements of `size` bytes, never NULL; free(). */
void *zeros(size_t n, size_t size);

/* A hash, and number `key` of a stream of uniform numbers in [0, 1). */
uint64_t mix(uint64_t x);
double uniform(uint64_t key);

/* |a - b| <= tolerance * max(1, |b|), and neither is NaN. */
bool near(double a, double b, double tolerance);

/* A seed from the clock, or BMUF_TEST_SEED of the environment; prints it. */
uint64_t seed_of_the_day(void);

void assert_ok_at(bm_status status, const char *text, const char *file,
                  int line);

/* Runs the group on every rank; rank 0 prints. Returns main's exit status. */
int run_group_mpi(const char *name, const struct CMUnitTest *tests, size_t n);

/* Setup and teardown of a test: its state is the comm of all ranks. */
int open_comm(void **state);
int close_comm(void **state);

#define RUN_GROUP(name, tests) cmocka_run_group_tests_name(name, tests, 0, 0)
#define RUN_GROUP_MPI(name, tests)                                             \
    run_group_mpi(name, tests, sizeof(tests) / sizeof((tests)[0]))

#endif
