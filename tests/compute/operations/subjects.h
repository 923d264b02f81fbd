/*
 * subjects.h - the rows of test_operations.c, a file for each kind of operation.
 * A row describes an operation, or one with its backward pass: see
 * operation_rig.h. `rounded` is 1e-6 where no precision rounds: the update of a
 * model, and sums of floats.
 */
#ifndef BM_TESTS_COMPUTE_OPERATIONS_SUBJECTS_H
#define BM_TESTS_COMPUTE_OPERATIONS_SUBJECTS_H

#include "tests/support/reference/operation_rig.h"

typedef struct subjects {
    const subject *rows;
    size_t n;
} subjects;

/* operations_<name>.c */
#define OPERATION_SUBJECTS(X)                                                  \
    X(matrices)                                                                \
    X(elementwise)                                                             \
    X(recurrent)                                                               \
    X(convolution)                                                             \
    X(normalisation)                                                           \
    X(attention)                                                               \
    X(losses)                                                                  \
    X(updates)                                                                 \
    X(exchange)

#define X(name) extern const subjects name##_subjects;
OPERATION_SUBJECTS(X)
#undef X

static const bm_window each_frame = {1, 1, 0, 0};

double expect_activation(bm_activation f, double x);

/* For pooling, and behind normalisation: the arrays x, dy, y and dx of a shape
 * {T, B, H, C, frames and rows of a window}; y, the maximum of f(x[i]) over
 * each window, or 0 in padding. */
void make_windows(trial *t);
void expect_pooling(const trial *t, bm_activation f, const double *x, double *y,
                    size_t n_y);

#endif
