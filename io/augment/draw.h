/*
 * draw.h - random numbers of augmentation. None of them uses the C library's
 * functions, whose last bits differ between processors.
 */
#ifndef BM_IO_AUGMENT_DRAW_H
#define BM_IO_AUGMENT_DRAW_H

#include "core/rng.h"

/* Each use has a stream of its own, so that a setting does not change what
 * others draw. */
typedef enum bm_draw {
    BM_DRAW_SHARE,
    BM_DRAW_SPEED,
    BM_DRAW_WARP,
    BM_DRAW_AFFINE,
    BM_DRAW_ELASTIC,
    BM_DRAW_STROKE,
    BM_DRAW_VALUES,
    BM_DRAW_NOISE,
    BM_DRAW_TIME_MASKS,
    BM_DRAW_FREQUENCY_MASKS,
    BM_DRAW_CUTOUTS,
    BM_DRAW_REVERB,
    BM_DRAW_NOISE_SOUND
} bm_draw;

static inline bm_rng bm_draw_stream(uint64_t key, bm_draw use)
{
    return (bm_rng){bm_rng_fork(key, (uint64_t)use), 0};
}

/* Uniform in [-1, 1). */
static inline double bm_draw_sign(bm_rng *rng)
{
    return 2 * bm_rng_uniform(rng) - 1;
}

/* Nearly Gaussian, mean 0 and variance 1: the sum of the eight bytes of a random
 * number, at most 4.88 deviations. */
static inline float bm_draw_gauss(uint64_t bits)
{
    const uint64_t even = 0x00ff00ff00ff00ffu;
    uint64_t pairs = (bits & even) + (bits >> 8 & even);
    int64_t sum = (int64_t)(pairs * 0x0001000100010001u >> 48);

    /* mean 8 * 127.5; variance 8 * (256^2 - 1) / 12 = 43690 */
    return (float)(sum - 1020) * (1 / 209.02153f);
}

#endif
