/*
 * line_image.h - PNG images of a line of writing, in grey, at a fixed height.
 */
#ifndef BM_IO_IMPORT_LINE_IMAGE_H
#define BM_IO_IMPORT_LINE_IMAGE_H

#include "core/status.h"
#include "io/import/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bm_line_image {
    uint8_t *grey; /* [height, width], 0 black, 255 white */
    size_t width, height;
} bm_line_image;

/* Colours become grey; what is transparent lies on white. An image that cannot
 * be read is a problem. Free with bm_line_image_free. */
BM_CHECKED bm_status bm_line_image_read(bm_line_image *out, const char *path,
                                        bm_problem *problem);
void bm_line_image_free(bm_line_image *image);

/* Whether most of it is dark: light ink on dark ground. */
bool bm_line_image_is_dark(const bm_line_image *image);

/*
 * *out [width', height] in columns (free() it), *width the nearest to the same
 * proportions, at least 1. Shrinking averages areas, growing interpolates
 * between the centres of pixels. One too large to be a line is a problem.
 */
BM_CHECKED bm_status bm_line_image_columns(const bm_line_image *image,
                                           size_t height, uint8_t **out,
                                           size_t *width, bm_problem *problem);

#endif
