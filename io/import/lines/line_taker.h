/* line_taker.h - who takes the lines that a reader finds in files of others:
 * what is written on a line, and where its image is. */
#ifndef BM_IO_IMPORT_LINES_LINE_TAKER_H
#define BM_IO_IMPORT_LINES_LINE_TAKER_H

#include "core/status.h"

#include <stddef.h>

/* Texts are borrowed for the call. */
typedef struct bm_found_line {
    const char *id;
    const char *image; /* its path */
    const char *shape; /* on a page, as bm_line_shape_read takes it; NULL: the
                          image is of this line alone */
    const char *text;  /* NULL: there is none */
    const char *file;  /* that says so */
    size_t line;       /* of that file, from 1 */
} bm_found_line;

/* `take` may fail, which ends the reading; `fault` notes a line that is of no
 * use. `pass` gets the status of reading one of several files: it notes a failure
 * of that file, the last one, and returns BM_OK, and returns any other. */
typedef struct bm_line_taker {
    bm_status (*take)(void *to, const bm_found_line *line);
    void (*fault)(void *to, const char *file, size_t line, const char *text);
    void *to;
    bm_status (*pass)(void *to, bm_status status);
} bm_line_taker;

#endif
