/*
 * cuda_choice.h - which of several ways computes something: the fastest, timed
 * at the first batch of its kind and written down in a file, see cuda_choice.c.
 * Ways round differently, so whoever goes on takes the same.
 *
 *     const bm_ways ways = {.what = "LSTM", .variable = "BMUF_LSTM", ..};
 *     size_t i = bm_cuda_choose(be, &ways);        SIZE_MAX after a failure
 */
#ifndef BM_COMPUTE_CUDA_CUDA_CHOICE_H
#define BM_COMPUTE_CUDA_CUDA_CHOICE_H

#include "compute/cuda/cuda.h"

/* Times are taken of so many frames at most, and lengths are rounded up. */
enum { BM_CHOICE_FRAMES = 128, BM_CHOICE_STEP = 32 };

typedef struct bm_ways {
    const char *what;     /* is computed */
    const char *variable; /* of the environment: names the way for all */
    const char *shape;    /* what the choice depends on, beside the machine */
    const char *(*name)(size_t i); /* NULL: there is no way i */
    /* What keeps it from such a batch; NULL: nothing. */
    const char *(*obstacle)(void *self, size_t i);
    /* Queues one step of a batch like that, between whose events time is taken;
     * `prepare` first and `clear` last, also after a failure. */
    bm_status (*prepare)(void *self, size_t i);
    void (*step)(void *self, size_t i);
    void (*clear)(void *self, size_t i);
    size_t frames; /* of such a step: times are told per frame */
    void *self;
} bm_ways;

/* The same for all calls with such a shape. It may wait for the device at the
 * first one. Of equally fast ways the first is taken. */
size_t bm_cuda_choose(bm_backend *be, const bm_ways *w);
void bm_cuda_choices_free(bm_backend *be);

/* T as it decides. */
static inline size_t bm_choice_frames(size_t T)
{
    size_t up = (T + BM_CHOICE_STEP - 1) / BM_CHOICE_STEP * BM_CHOICE_STEP;
    return up < BM_CHOICE_FRAMES ? up : BM_CHOICE_FRAMES;
}

#endif
