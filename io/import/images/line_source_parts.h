/* line_source_parts.h - the kinds of line_source.h, one function each. */
#ifndef BM_IO_IMPORT_IMAGES_LINE_SOURCE_PARTS_H
#define BM_IO_IMPORT_IMAGES_LINE_SOURCE_PARTS_H

#include "io/import/images/line_taker.h"

#include <stdbool.h>

/* Limits of a list, and of the text of a line. */
#define BM_MOST_LIST_BYTES ((size_t)1 << 28)
#define BM_MOST_TEXT_BYTES ((size_t)1 << 20)

/* Endings of images, in the order in which they are looked for. */
extern const char *const bm_image_endings[]; /* ending with NULL */

/* Is the name that of an image? */
bool bm_is_image_name(const char *name);

/* path [PATH_MAX] <- "FOLDER/NAME" with the first ending for which there is a
 * file; with the first of all if there is none. False: it is too long. */
bool bm_find_image(char *path, const char *folder, const char *name);

/* Fail as bm_line_source_read. */
BM_CHECKED bm_status bm_line_folder_read(const char *folder,
                                         const bm_line_taker *taker);
BM_CHECKED bm_status bm_line_list_read(const char *path, const char *image_dir,
                                       const bm_line_taker *taker);

#endif
