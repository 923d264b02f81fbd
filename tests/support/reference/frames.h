/*
 * frames.h - random mini-batches for tests of operations on columns of pixels,
 * and comparisons with what a backend computes: the CPU with every instruction
 * set, or the backend that the program's arguments name.
 *
 *     frames *x = frames_draw((bm_window){1, 1, 0, 0}, H * C, 1);
 *     FOR_EACH_SET(be)
 *     check_something(be, x);
 *     frames_free(x);
 */
#ifndef BM_TESTS_SUPPORT_REFERENCE_FRAMES_H
#define BM_TESTS_SUPPORT_REFERENCE_FRAMES_H

#include "compute/backend.h"

enum { T = 9, B = 4 };

/* Instruction sets of the CPU; "": of a backend without a choice. */
static const char *const set_names[] = {"baseline", "avx2", "avx512", ""};

/* From the arguments [BACKEND [bf16 | cudnn | cudnn_bf16]] of the program, the
 * precision, and cuDNN for convolutions; without them the CPU. */
extern const char *frames_backend;
extern bm_precision frames_precision;
void frames_choose(int argc, char **argv);

/* The backend with that set; NULL: this machine does not have it. */
bm_backend *open_set(const char *name);

#define FOR_EACH_SET(be)                                                       \
    FOR_EACH (be##_number, set_names)                                          \
        for (bm_backend *be = open_set(set_names[be##_number]); be != NULL;    \
             bm_backend_close(be), be = NULL)

/* Frames of n numbers of bf16 on the host; padding is NaN. */
typedef struct frames {
    bm_extent e;
    int32_t lengths[B];
    size_t n;
    float *x;
} frames;

/* A frame for each window over the frames of the batch. */
frames *frames_draw(bm_window time, size_t n, uint64_t seed);
void frames_free(frames *f);
size_t frames_count(const frames *f); /* numbers */

/* n numbers, to be freed. */
float *draw_weights(size_t n);
double *doubles(size_t n); /* zeros */

/* x, a tensor like f on the backend, against `expected`; padding must be 0. */
void check_frames(bm_backend *be, const frames *f, const float *x,
                  const double *expected, double tolerance);
void check_numbers(bm_backend *be, size_t n, const float *x,
                   const double *expected, double tolerance);

/* Tolerances: of a sum of n products of numbers of bf16; of that when stored;
 * of gradients of weights, which are floats, except cuDNN's. */
double rounding(size_t n);
double stored(double tolerance);
double learned(double tolerance);

#endif
