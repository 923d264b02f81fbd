/*
 * image_file.h - reads image files: PNG, JPEG, TIFF, and the portable maps PBM,
 * PGM and PPM. The first bytes tell which it is, not the name.
 */
#ifndef BM_IO_IMPORT_IMAGES_IMAGE_FILE_H
#define BM_IO_IMPORT_IMAGES_IMAGE_FILE_H

#include "io/import/images/line_image.h"

/* Converts colours to grey, on white where they are transparent. The size that
 * the file claims is checked before memory is taken for it. An image that cannot
 * be read, or has more than `most` pixels, sets *problem. Fails with
 * BM_ERR_MEMORY, or with BM_ERR_IO if the disk does. Free with
 * bm_line_image_free. */
BM_CHECKED bm_status bm_image_file_read(bm_line_image *out, const char *path,
                                        size_t most, bm_problem *problem);

#endif
