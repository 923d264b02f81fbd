/*
 * frames.h - drawn mini-batches for tests of operations on columns of pixels,
 * and comparisons of what a backend makes of them: the CPU with every
 * instruction set, or the one that the program's arguments name.
 *
 *     frames *x = frames_draw((bm_window){1, 1, 0, 0}, H * C, 1);
 *     FOR_EACH_SET(be)
 *     check_something(be, x);
 *     frames_free(x);
 */
#ifndef BM_TESTS_SUPPORT_FRAMES_H
#define BM_TESTS_SUPPORT_FRAMES_H

#include "compute/backend.h"

enum { T = 9, B = 4 };

/* An instruction set of the CPU, or nothing to choose from. */
static const char *const set_names[] = {"baseline", "avx2", "avx512", ""};

/* From the arguments [BACKEND [bf16 | cudnn | cudnn_bf16]] of the program, the
 * precision, and cuDNN for convolutions; without them the CPU. */
extern const char *frames_backend;
extern bm_precision frames_precision;
void frames_choose(int argc, char **argv);

/* The backend with that set; NULL: not on this machine. */
bm_backend *open_set(const char *name);

#define FOR_EACH_SET(be)                                                       \
    FOR_EACH (be##_number, set_names)                                          \
        for (bm_backend *be = open_set(set_names[be##_number]); be != NULL;    \
             bm_backend_close(be), be = NULL)

/* Frames of n numbers of bf16 on the host, with padding in which no number is
 * one. */
typedef struct frames {
    bm_extent e;
    int32_t lengths[B];
    size_t n;
    float *x;
} frames;

/* As many frames as there are windows over those of the batch. */
frames *frames_draw(bm_window time, size_t n, uint64_t seed);
void frames_free(frames *f);
size_t frames_count(const frames *f); /* numbers */

/* n of them, to be freed. */
float *draw_weights(size_t n);
double *doubles(size_t n); /* zeros */

/* What a backend left in place of a tensor like f; padding is zero. */
void check_frames(bm_backend *be, const frames *f, const float *x,
                  const double *expected, double tolerance);
void check_numbers(bm_backend *be, size_t n, const float *x,
                   const double *expected, double tolerance);

/* Of a sum of n products of numbers of bf16; of what is stored then, and of
 * gradients of weights: floats, but cuDNN's. */
double rounding(size_t n);
double stored(double tolerance);
double learned(double tolerance);

bm_window side_by_side(size_t size);

#endif
