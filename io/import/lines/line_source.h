/*
 * line_source.h - line images as other programs keep them, in place of a
 * manifest:
 *
 *   - a folder with NAME.png and NAME.gt.txt, of kraken, Calamari and OCR-D;
 *   - a list of PyLaia, "id t h e <space> t e x t", and a folder of images;
 *   - pages in PAGE XML or ALTO: a file or a folder of them;
 *   - a list of the paths of such images or pages, one a line.
 *
 * Lists may be compressed with gzip; that of PyLaia may be "-", standard input.
 */
#ifndef BM_IO_IMPORT_LINES_LINE_SOURCE_H
#define BM_IO_IMPORT_LINES_LINE_SOURCE_H

#include "io/import/lines/line_taker.h"

#include <stdbool.h>

/* Whether it is one of these; image_dir: folder of a list's images, "": it is
 * not such a list. */
bool bm_line_source_is(const char *path, const char *image_dir);

/* Gives all lines, those of a folder in byte order of the names. Fails with
 * BM_ERR_FORMAT if there are none, or for a file that is invalid as a whole,
 * with BM_ERR_MISSING, BM_ERR_IO or BM_ERR_MEMORY, and as `take`. */
BM_CHECKED bm_status bm_line_source_read(const char *path,
                                         const char *image_dir,
                                         const bm_line_taker *taker);

#endif
