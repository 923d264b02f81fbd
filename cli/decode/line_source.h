/*
 * line_source.h - lines of a file or of stdin, as they come. A reader that waits
 * for a pipe can be stopped.
 */
#ifndef BM_CLI_DECODE_LINE_SOURCE_H
#define BM_CLI_DECODE_LINE_SOURCE_H

#include "core/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { BM_LONGEST_LINE = 1 << 16 }; /* bytes */

typedef struct bm_line_source {
    int fd; /* borrowed if it is stdin's */
    size_t begin, end;
    bool begun; /* a line was taken */
    bool ended;
    char bytes[BM_LONGEST_LINE];
} bm_line_source;

/* Fails as bm_file_open_regular. */
BM_CHECKED bm_status bm_line_source_open(bm_line_source *s, const char *path);
/* Of a file: to its first line. Fails with BM_ERR_IO. */
BM_CHECKED bm_status bm_line_source_rewind(bm_line_source *s);
void bm_line_source_open_stdin(bm_line_source *s);
void bm_line_source_close(bm_line_source *s);

/* *line <- the next line, the first one without a byte order mark, ended by '\0',
 * valid until the next call; NULL: there is none, or *stop is true. Fails with
 * BM_ERR_FORMAT if a line is too long, or with BM_ERR_IO. */
BM_CHECKED bm_status bm_line_source_next(bm_line_source *s,
                                         const atomic_bool *stop, char **line);

/* Whether what comes first is a recording, an image or other binary data. No
 * byte is lost. Fails with BM_ERR_IO. */
BM_CHECKED bm_status bm_line_source_is_binary(bm_line_source *s,
                                              const atomic_bool *stop,
                                              bool *binary);

/* Writes all that comes to a file. Fails with BM_ERR_IO. */
BM_CHECKED bm_status bm_line_source_store(bm_line_source *s,
                                          const atomic_bool *stop, int fd);

#endif
