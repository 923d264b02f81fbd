/*
 * masks.h - masks over time and over frequency (SpecAugment, Park et al. 2019)
 * and rectangles (cut-out, DeVries & Taylor 2017), in place.
 *
 * A mask of at most W out of n: its width is uniform in 0 .. min(W, n), then its
 * place among all where it fits. A time mask is of frames, with W the smaller of
 * time_width and time_share times the frames; a frequency mask is of bands, in
 * all columns; a rectangle is of strips and bands.
 */
#ifndef BM_IO_AUGMENT_MASKS_H
#define BM_IO_AUGMENT_MASKS_H

#include "io/augment/augment_settings.h"
#include "io/augment/layout.h"

#include <stdint.h>

/* Masks x [frames, D]; fill [D]: what masked features become. `key`: of the
 * sequence. */
void bm_masks_apply(const bm_augment_settings *s, const bm_layout *l,
                    uint64_t key, const float *fill, float *x, size_t frames);

#endif
