/*
 * image_frames.h - frames of a line image, with the settings that `[features]`
 * has for images. The background is 0 and ink is 1. A frame is some columns of
 * pixels, from left to right, each from top to bottom.
 */
#ifndef BM_IO_IMPORT_IMAGE_FRAMES_H
#define BM_IO_IMPORT_IMAGE_FRAMES_H

#include "core/config.h"
#include "io/features/feature_chain.h"
#include "io/import/line_image.h"

typedef struct bm_image_settings {
    long height, columns, pad;
    const char *invert;
} bm_image_settings;

extern const bm_option bm_image_options[];

/* The value of 1 in a stored byte. */
extern const double bm_image_scale;

typedef enum bm_invert {
    BM_INVERT_AUTO,
    BM_INVERT_YES,
    BM_INVERT_NO
} bm_invert;
bm_invert bm_image_invert(const bm_image_settings *s);

/* The frames of an image, scaled to the height of the settings; the last frame
 * is padded. An image that is too large for a line sets *problem. Fails with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_image_frames(const bm_image_settings *s,
                                     bm_invert invert,
                                     const bm_line_image *image, bm_frames *x,
                                     bm_problem *problem);

#endif
