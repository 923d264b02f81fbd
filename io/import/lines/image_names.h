/* image_names.h - the endings of the names of images. */
#ifndef BM_IO_IMPORT_LINES_IMAGE_NAMES_H
#define BM_IO_IMPORT_LINES_IMAGE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Endings of images, in the order in which they are looked for. */
extern const char *const bm_image_endings[]; /* ending with NULL */

/* The length of the ending of an image's name; 0: it is not an image. */
size_t bm_image_ending(const char *name);

bool bm_is_image_name(const char *name);

/* path [PATH_MAX] <- "FOLDER/NAME" with the first ending for which there is a
 * file; with the first of all if there is none. False: it is too long. */
bool bm_find_image(char *path, const char *folder, const char *name);

#endif
