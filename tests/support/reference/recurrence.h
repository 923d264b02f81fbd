/*
 * recurrence.h - LSTMs over all frames, as in lstm_kernels.h, against their
 * equations in double precision, frame by frame. The inputs of a frame from its
 * neighbour are the outputs under test, so that error bounds hold for one
 * frame: bf16 rounds to 2^-8 of a number, tanh.approx to 2^-11, and a sum of n
 * terms in fp32 errs by n 2^-23 of the sum of their absolute values.
 */
#ifndef BM_TESTS_SUPPORT_REFERENCE_RECURRENCE_H
#define BM_TESTS_SUPPORT_REFERENCE_RECURRENCE_H

#include <stddef.h>
#include <stdint.h>

enum { MOST_SEQUENCES = 224 };

typedef struct recurrence {
    size_t H, R, T, B;
    size_t shift; /* bytes from a cache line to the caller's arrays */
    int32_t frames[MOST_SEQUENCES];
} recurrence;

/* bf16 [T, B, R, 4, H], [T, B, R, H] twice, [R, 4 H, H]; c [T, B, R, H]. */
typedef struct arrays {
    size_t n_gates, n_y, n_wh;
    uint16_t *gates, *y, *dy, *wh;
    float *cells;
} arrays;

/* Lengths out of order, among them T, 0 and 1. */
recurrence recurrence_with(size_t H, size_t R, size_t T, size_t B);

/* Padding, which may not be read, and outputs are NaN. */
arrays arrays_draw(const recurrence *p);
arrays arrays_copy(const arrays *a);
void arrays_free(arrays *a);

/* Inputs in a, outputs in got; fails the test if an error exceeds its bound. */
void check_forward(const recurrence *p, const arrays *a, const arrays *got);
void check_backward(const recurrence *p, const arrays *a, const arrays *got);

#endif
