/*
 * image_frames.h - frames of a line image, with the settings that `[features]`
 * has for images. The background is 0 and ink is 1. A frame is some columns of
 * pixels, from left to right, each from top to bottom.
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
    const char *invert, *binarise;
    bool contrast, slant;
} bm_image_settings;

extern const bm_option bm_image_options[];

/* The value of 1 in a stored byte. */
extern const double bm_image_scale;

/* Settings without texts, which are borrowed from a configuration. */
typedef struct bm_image_plan {
    size_t height, columns, pad;
    bool contrast, slant;
    enum { BM_INVERT_AUTO, BM_INVERT_YES, BM_INVERT_NO } invert;
    enum { BM_BINARISE_NO, BM_BINARISE_OTSU, BM_BINARISE_SAUVOLA } binarise;
} bm_image_plan;
bm_image_plan bm_image_plan_of(const bm_image_settings *s);

/* The frames of an image, cleaned and scaled to the height of the plan; the
 * last frame is padded. *moved, unless NULL: by how many pixels of the image
 * cleaning moved it to the right, in its middle row. An image that is too large for
 * a line sets *problem. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_image_frames(const bm_image_plan *plan,
                                     const bm_line_image *image, bm_frames *x,
                                     double *moved, bm_problem *problem);

#endif
