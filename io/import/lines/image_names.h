/* image_names.h - the endings of the names of images. */
#ifndef BM_IO_IMPORT_LINES_IMAGE_NAMES_H
#define BM_IO_IMPORT_LINES_IMAGE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* out <- the i-th ending in the order in which they are looked for: all in small
 * letters, all in capitals, and all with one capital. False: there are no more. */
enum { BM_IMAGE_SUFFIX = 16 };
bool bm_image_suffix(char out[BM_IMAGE_SUFFIX], size_t i);

/* The length of the ending of an image's name, in letters of either case; 0: it is
 * not an image. */
size_t bm_image_ending(const char *name);

bool bm_is_image_name(const char *name);

/* path [PATH_MAX] <- "FOLDER/NAME" with the first ending for which there is a
 * file, also of images that are not read; with the first of all if there is none.
 * False: it is too long. */
bool bm_find_image(char *path, const char *folder, const char *name);

#endif
