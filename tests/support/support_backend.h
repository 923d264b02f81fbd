/* support_backend.h - opens backends for tests and moves numbers to and from
 * them. */
#ifndef BM_TESTS_SUPPORT_SUPPORT_BACKEND_H
#define BM_TESTS_SUPPORT_SUPPORT_BACKEND_H

#include "compute/backend_ops.h"
#include "tests/support/support.h"

/* Setup and teardown of groups that share a backend on the CPU. */
extern bm_backend *cpu;
int open_cpu(void **state);
int close_cpu(void **state);

/* Runs the group on the backend that the first argument names, cpu without one;
 * the second argument bf16 selects that precision. Returns main's exit
 * status. */
extern bm_backend *chosen;
int run_group_on(int argc, char **argv, const char *name,
                 const struct CMUnitTest *tests, size_t n);
#define RUN_GROUP_ON(argc, argv, name, tests)                                  \
    run_group_on(argc, argv, name, tests, sizeof(tests) / sizeof((tests)[0]))

/* Can this backend be opened? Prints why not. */
bool have_backend(const char *name);

/* Can the engine that BMUF_CONV names be used? Prints why not. */
bool have_convolution(const char *name, bm_precision precision);

/* A backend "bare" whose only operation is a sync. */
bm_backend bare_backend(void);

/* Copies n floats to the backend. Free with bm_free. */
float *place(bm_backend *be, const float *host, size_t n);

/* Copies n floats from the backend, after a sync. Free with free. */
float *fetch(bm_backend *be, const float *x, size_t n);

/* Is element i of a [T, B, size] tensor outside the padding? */
bool inside(const bm_extent *e, size_t i, size_t size);

#endif
