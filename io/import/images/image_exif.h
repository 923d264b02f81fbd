/* image_exif.h - which way up a photograph is: the orientation that cameras note
 * in a JPEG or PNG (Exif 2.3, tag 274), instead of turning the pixels. TIFF has the same
 * tag. */
#ifndef BM_IO_IMPORT_IMAGES_IMAGE_EXIF_H
#define BM_IO_IMPORT_IMAGES_IMAGE_EXIF_H

#include "io/import/images/line_image.h"

/* The orientation that a JPEG in memory notes, 1 to 8; 1, as it is stored, if it
 * notes none or its notes are damaged. */
int bm_exif_orientation(const uint8_t *jpeg, size_t size);

/* The same of the notes alone, which begin with a TIFF header, as PNG has them. */
int bm_exif_orientation_of_notes(const uint8_t *notes, size_t size);

/* Turns an image so that it is upright. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_image_turn(bm_line_image *image, int orientation);

#endif
