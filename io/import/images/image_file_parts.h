/* image_file_parts.h - the formats of image files: one function each, which
 * decodes a file in memory. */
#ifndef BM_IO_IMPORT_IMAGES_IMAGE_FILE_PARTS_H
#define BM_IO_IMPORT_IMAGES_IMAGE_FILE_PARTS_H

#include "io/import/images/line_image.h"

/* A file, borrowed. */
typedef struct bm_image_source {
    const char *path; /* for messages */
    const uint8_t *bytes;
    size_t size;
    size_t most; /* pixels */
} bm_image_source;

/* Decodes to *out, or sets *problem. Fails with BM_ERR_MEMORY. */
typedef bm_status bm_image_decode(bm_line_image *out, const bm_image_source *s,
                                  bm_problem *problem);
bm_image_decode bm_image_png, bm_image_jpeg, bm_image_tiff, bm_image_pnm;

/* Takes memory for the pixels of *out, or sets *problem if there are none or too
 * many. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_image_room(bm_line_image *out, const bm_image_source *s,
                                   size_t width, size_t height,
                                   bm_problem *problem);

/* Sets *problem for a file that cannot be decoded; why: as the library says. */
void bm_image_damaged(const bm_image_source *s, const char *why,
                      bm_problem *problem);

/* Colours to grey, as in JPEG (ITU-R BT.601). */
static inline uint8_t bm_image_luma(unsigned red, unsigned green, unsigned blue)
{
    return (uint8_t)((299 * red + 587 * green + 114 * blue + 500) / 1000);
}

#endif
