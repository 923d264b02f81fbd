/* support_backend.h - numbers on a backend, for tests. */
#ifndef BM_TESTS_SUPPORT_SUPPORT_BACKEND_H
#define BM_TESTS_SUPPORT_SUPPORT_BACKEND_H

#include "compute/backend_ops.h"
#include "tests/support/support.h"

/* For groups of tests on the CPU, which share this backend. */
extern bm_backend *cpu;
int open_cpu(void **state);
int close_cpu(void **state);

/* For programs that need one backend: the one that the first argument names,
 * cpu, if there is none; with bf16 for a second one it rounds factors. Runs the
 * group; the exit status of main. */
extern bm_backend *chosen;
int run_group_on(int argc, char **argv, const char *name,
                 const struct CMUnitTest *tests, size_t n);
#define RUN_GROUP_ON(argc, argv, name, tests)                                  \
    run_group_on(argc, argv, name, tests, sizeof(tests) / sizeof((tests)[0]))

/* Whether the machine has it; if not, says why. */
bool have_backend(const char *name);

/* Whether the engine that BMUF_CONV names can be had; if not, says why. */
bool have_convolution(const char *name, bm_precision precision);

/* A backend called "bare" that can do nothing but wait. */
bm_backend bare_backend(void);

/* A copy of n floats on the backend. Free with bm_free. */
float *place(bm_backend *be, const float *host, size_t n);

/* n floats from the backend, after a sync. Free with free. */
float *fetch(bm_backend *be, const float *x, size_t n);

/* Does element i of a [T, B, size] tensor belong to a frame, not to padding? */
bool inside(const bm_extent *e, size_t i, size_t size);

#endif
