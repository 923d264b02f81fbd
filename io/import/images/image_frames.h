/*
 * image_frames.h - frames of a line image, with the settings that `[features]`
 * has for images. White is 0 and ink is 1. A frame is some columns of
 * pixels, each from top to bottom; from left to right, or for writing of the other
 * direction from right to left.
 */
#ifndef BM_IO_IMPORT_IMAGES_IMAGE_FRAMES_H
#define BM_IO_IMPORT_IMAGES_IMAGE_FRAMES_H

#include "core/config/config.h"
#include "io/features/feature_chain.h"
#include "io/import/images/line_image.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct bm_image_settings {
    long height, columns, pad;
    const char *invert, *binarise, *right_to_left;
    bool contrast, slant;
} bm_image_settings;

extern const bm_option bm_image_options[];

/* The value of 1 in a stored byte. */
extern const double bm_image_scale;

/* Settings without texts, which are borrowed from a configuration. */
typedef struct bm_image_plan {
    size_t height, columns, pad;
    bool contrast, slant, right_to_left;
    enum { BM_INVERT_AUTO, BM_INVERT_YES, BM_INVERT_NO } invert;
    enum { BM_BINARISE_NO, BM_BINARISE_OTSU, BM_BINARISE_SAUVOLA } binarise;
} bm_image_plan;
bm_image_plan bm_image_plan_of(const bm_image_settings *s);

/* Where frames lie in an image: that of frame t begins at pixel start + t * step
 * of its width, in its middle row. step: below 0 from right to left. */
typedef struct bm_image_places {
    double start, step;
} bm_image_places;

/* The frames of an image, cleaned and scaled to the height of the plan; the
 * last frame is padded. places: NULL if they are not asked for. An image that is
 * too large for a line sets *problem. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_image_frames(const bm_image_plan *plan,
                                     const bm_line_image *image, bm_frames *x,
                                     bm_image_places *places,
                                     bm_problem *problem);

#endif
