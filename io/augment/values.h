/*
 * values.h - changes of values in place: contrast, offset and noise, and the
 * width of strokes; the paper of an image.
 */
#ifndef BM_IO_AUGMENT_VALUES_H
#define BM_IO_AUGMENT_VALUES_H

#include "io/augment/augment_settings.h"
#include "io/augment/layout.h"

#include <stdint.h>

/* The units of a sequence's values. Of an image: the mean of all pixels, ink is
 * 1. Else the mean and deviation of each feature. */
typedef struct bm_moments {
    float *mean, *unit; /* [D] */
    double *sums;       /* [D] scratch */
} bm_moments;

/* Of x [frames, D], frames > 0. */
void bm_moments_find(bm_moments *m, const bm_layout *l, const float *x,
                     size_t frames);

/* The paper of an image x [frames, D], frames > 0: the median of the pixels of its
 * edge, the lighter one of two, in steps of 1/255. */
float bm_paper(const bm_layout *l, const float *x, size_t frames);

/* x <- mean + contrast (x - mean) + offset + noise, as the settings say; pixels
 * stay in [0, 1]. add [D]: scratch. */
void bm_values_change(const bm_augment_settings *s, const bm_layout *l,
                      const bm_moments *m, uint64_t key, float *x,
                      size_t frames, float *add);

/* Dilates (amount > 0) or erodes (< 0) by |amount| pixels; work [frames, D]. */
void bm_strokes_change(const bm_layout *l, double amount, float *x,
                       size_t frames, float *work);

#endif
