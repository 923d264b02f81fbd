/* line_source_parts.h - the kinds of line_source.h, one function each. */
#ifndef BM_IO_IMPORT_LINES_LINE_SOURCE_PARTS_H
#define BM_IO_IMPORT_LINES_LINE_SOURCE_PARTS_H

#include "io/import/lines/line_taker.h"

#include <limits.h>
#include <stdbool.h>

/* Limits of a list, and of the text of a line. */
#define BM_MOST_LIST_BYTES ((size_t)1 << 28)
#define BM_MOST_TEXT_BYTES ((size_t)1 << 20)

/* id <- the name of a file of a text without ".gt.txt", blanks as '_'. */
void bm_line_text_id(const char *file, char id[NAME_MAX + 1]);

/* Gives the line of `image`, whose text is in a file of its own, with the id of
 * bm_line_text_id. Fails as bm_line_taker.take, and with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_line_text_read(const char *file, const char *image,
                                       const bm_line_taker *taker);

/* Does the list begin with the path of a page or an image? */
bool bm_line_paths_is(const char *path);

/* Fail as bm_line_source_read. */
BM_CHECKED bm_status bm_line_paths_read(const char *list,
                                        const bm_line_taker *taker);
BM_CHECKED bm_status bm_line_folder_read(const char *folder,
                                         const bm_line_taker *taker);
BM_CHECKED bm_status bm_line_list_read(const char *path, const char *image_dir,
                                       const bm_line_taker *taker);

#endif
