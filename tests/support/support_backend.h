/* support_backend.h - helpers for tests that use a backend. */
#ifndef BM_TESTS_SUPPORT_SUPPORT_BACKEND_H
#define BM_TESTS_SUPPORT_SUPPORT_BACKEND_H

#include "compute/backend_ops.h"
#include "tests/support/support.h"

/* For groups of tests on the CPU, which share this backend. */
extern bm_backend *cpu;
int open_cpu(void **state);
int close_cpu(void **state);

/* For programs that use one backend: opens the one that the first argument names
 * (cpu), in bf16 if that is the second, runs the group, and returns the exit
 * status of main. */
extern bm_backend *chosen;
int run_group_on(int argc, char **argv, const char *name,
                 const struct CMUnitTest *tests, size_t n);
#define RUN_GROUP_ON(argc, argv, name, tests)                                  \
    run_group_on(argc, argv, name, tests, sizeof(tests) / sizeof((tests)[0]))

/* Whether the machine has the backend; if not, prints why. */
bool have_backend(const char *name);

/* Whether the engine that BMUF_CONV names is available; if not, prints why. */
bool have_convolution(const char *name, bm_precision precision);

/* A backend called "bare" that implements only bm_sync. */
bm_backend bare_backend(void);

/* A copy of n floats on the backend. Free with bm_free. */
float *place(bm_backend *be, const float *host, size_t n);

/* n floats from the backend, after a sync. Free with free. */
float *fetch(bm_backend *be, const float *x, size_t n);

/* Whether element i of a tensor [T, B, size] is in a frame, not in padding. */
bool inside(const bm_extent *e, size_t i, size_t size);

/* Windows that do not overlap. */
bm_window side_by_side(size_t size);

#endif
