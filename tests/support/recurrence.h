/*
 * recurrence.h - LSTMs over all frames, as lstm_kernels.h says, against their
 * equations in double precision, frame by frame. What a frame gets from its
 * neighbour is taken from what was left there, so that bounds need to hold for
 * a frame only: bf16 rounds to 2^-8 of a number, tanh.approx to 2^-11, and a
 * sum in fp32 of n terms errs by n 2^-23 of the sum of their sizes.
 */
#ifndef BM_TESTS_SUPPORT_RECURRENCE_H
#define BM_TESTS_SUPPORT_RECURRENCE_H

#include <stddef.h>
#include <stdint.h>

enum { MOST_SEQUENCES = 224 };

typedef struct recurrence {
    size_t H, R, T, B;
    size_t shift; /* of what callers give: numbers it begins behind a line */
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

/* What nobody may read, and what is to be written, are no numbers. */
arrays arrays_draw(const recurrence *p);
arrays arrays_copy(const arrays *a);
void arrays_free(arrays *a);

/* From what `a` holds to what was made of it; a test fails if it is too far. */
void check_forward(const recurrence *p, const arrays *a, const arrays *got);
void check_backward(const recurrence *p, const arrays *a, const arrays *got);

#endif
