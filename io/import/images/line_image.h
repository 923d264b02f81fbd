/*
 * line_image.h - images of a line of writing, in grey.
 */
#ifndef BM_IO_IMPORT_IMAGES_LINE_IMAGE_H
#define BM_IO_IMPORT_IMAGES_LINE_IMAGE_H

#include "core/status.h"
#include "io/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits of an image in pixels. A line: 20 m of it at 300 dpi. A page: A2 at
 * 600 dpi. */
#define BM_MOST_LINE_PIXELS ((size_t)1 << 25)
#define BM_MOST_PAGE_PIXELS ((size_t)1 << 27)

typedef struct bm_line_image {
    uint8_t *grey; /* [height, width], 0 black, 255 white; owned */
    size_t width, height;
} bm_line_image;

/* No-op on {0}. */
void bm_line_image_free(bm_line_image *image);

/* The median of greys, of which count[g] pixels have grey g, of one at least: it is
 * that of the paper, as ink covers less than half of a line. */
enum { BM_GREYS = 256 };
int bm_median_grey(const size_t count[BM_GREYS]);

/* True if all pixels are equal. */
bool bm_line_image_is_blank(const bm_line_image *image);

/* True if most pixels are dark: light ink on a dark background. */
bool bm_line_image_is_dark(const bm_line_image *image);

/*
 * Scales to this height, as columns: *out [*width, height]; free(*out). *width
 * keeps the proportions, rounded to nearest, at least 1. Shrinking averages
 * areas, growing interpolates between the centres of pixels. An image that is
 * too large for a line sets *problem. Fails with BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_line_image_columns(const bm_line_image *image,
                                           size_t height, uint8_t **out,
                                           size_t *width, bm_problem *problem);

#endif
