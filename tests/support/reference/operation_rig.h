/*
 * operation_rig.h - one operation against its definition in doubles, on every
 * backend, in every precision, for every instruction set. A subject says how:
 *
 *     make        declares the arrays of one shape, with numbers in them
 *     queue       calls the operation on copies of them on a backend
 *     reference   does the same in doubles, in plain loops
 *     gradients   arrays that hold derivatives of sum(dy y); the rig compares
 *                 them with central differences of `reference`
 *
 * See tests/compute/operations/, which has a row for each operation.
 */
#ifndef BM_TESTS_SUPPORT_REFERENCE_OPERATION_RIG_H
#define BM_TESTS_SUPPORT_REFERENCE_OPERATION_RIG_H

#include "tests/support/support_backend.h"

enum { MOST_ARRAYS = 12, MOST_SHAPE = 14, MOST_B = 8 };

typedef enum role {
    INPUT,    /* keeps its bits */
    CONSUMED, /* an input that may be overwritten */
    UPDATED,  /* holds numbers, and gets others */
    OUTPUT,   /* NaN at first */
} role;

typedef struct array {
    role role;
    bool wide; /* doubles on the backend, else floats */
    size_t n;
    double *x; /* exact as floats; what drawn() makes, also as bf16 */
} array;

typedef struct trial {
    const size_t *shape;
    array arrays[MOST_ARRAYS];
    size_t n_arrays;
    bm_extent in, out; /* made by draw_frames */
    int32_t in_frames[MOST_B], out_frames[MOST_B];
    bm_targets targets;
    int32_t classes[64], count[MOST_B];
    float *scratch[4]; /* of the backend that runs */
    size_t n_scratch;
} trial;

typedef struct gradient {
    int of, in; /* array `in` holds the derivatives by array `of` */
} gradient;

typedef struct subject {
    const char *operations; /* that it covers: names of operations.h */
    bool on_devices;        /* BM_DEVICE_OPERATION: the CPU lacks it */
    void (*make)(trial *t);
    void (*queue)(bm_backend *be, trial *t, float *const *x);
    /* Expected numbers for all outputs, but gradients; NaN: not compared. */
    void (*reference)(const trial *t, double *const *x);
    int y, dy;             /* arrays of the sum that gradients are of */
    gradient gradients[6]; /* ends with {0, 0} */
    /* In fp32: of each number, relative to at least 1. Else: the norm of the
     * difference of a whole array, relative to the norm of the array. */
    double fp32, rounded;
    size_t shapes[16][MOST_SHAPE]; /* ends with {0} */
} subject;

/* Arrays in the order of the calls: numbers in -2 .. 2 but not near 0, where
 * activations have corners; the same for the same shape. */
array *drawn(trial *t, role as, size_t n);
array *output(trial *t, size_t n);
array *zeroed(trial *t, role as, bool wide, size_t n);

/* Lengths of B sequences, among them T, 0 and 1, and of what windows over time
 * make of them. */
void draw_frames(trial *t, size_t T, size_t B, bm_window time);

/* Sets numbers in padding of an array [T, B, size]. */
void set_padding(const bm_extent *e, array *a, size_t size, double value);

/* n floats of the backend, NaN; freed after the queued work. */
float *scratch(bm_backend *be, trial *t, size_t n);

/* All shapes of a subject, on this device, or on the CPU if it is NULL: with
 * every instruction set, on one thread and on three. */
void check_subject(const subject *s, bm_backend *device);

#endif
