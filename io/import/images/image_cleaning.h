/*
 * image_cleaning.h - cleans images of a line with dark ink on a light background,
 * in place: contrast, slant, black and white.
 */
#ifndef BM_IO_IMPORT_IMAGES_IMAGE_CLEANING_H
#define BM_IO_IMPORT_IMAGES_IMAGE_CLEANING_H

#include "io/import/images/line_image.h"

/* Scales greys so that a hundredth of the pixels is black and one white. An
 * image of one grey is unchanged. */
void bm_image_stretch(bm_line_image *image);

/* Black and white by the threshold of Otsu, which separates greys best: ink is
 * what is darker or equal. An image of one grey is unchanged. */
void bm_image_otsu(bm_line_image *image);

/* Black and white by the threshold of Sauvola, m (1 + 0.2 (s / 128 - 1)) with
 * mean m and deviation s of a square around the pixel; its side is half the
 * image's height, but at least 15 pixels. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_image_sauvola(bm_line_image *image);

/* Shears the image to where its columns differ most in ink, by at most 45
 * degrees in steps of one, which makes strokes upright; it becomes wider,
 * with paper in the corners. *moved: by how many pixels its middle row is farther
 * to the right. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_image_upright(bm_line_image *image, double *moved);

#endif
