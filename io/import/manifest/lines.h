/*
 * lines.h - the lines of a text file, plain or compressed with gzip, or of
 * standard input ("-").
 */
#ifndef BM_IO_IMPORT_MANIFEST_LINES_H
#define BM_IO_IMPORT_MANIFEST_LINES_H

#include "core/status.h"

#include <stddef.h>

typedef struct bm_lines bm_lines;

/* Fails as bm_file_open_regular. `path` is borrowed. Close with bm_lines_close;
 * NULL is a no-op. */
BM_CHECKED bm_status bm_lines_open(bm_lines **out, const char *path);
void bm_lines_close(bm_lines *l);

/* The next line without its end, the first one without a byte order mark,
 * borrowed until the next call, and its length, which may count zero bytes; NULL
 * at the end of the file. Fails with
 * BM_ERR_FORMAT for damaged gzip data or a line of more than 256 MB, with
 * BM_ERR_IO, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_lines_next(bm_lines *l, char **line, size_t *length);

/* *out: all lines of a file, each with a '\n' at its end, and a '\0' after
 * them; free(*out). Fails as open and next do, or with BM_ERR_FORMAT for more
 * than `most` bytes or a zero byte. */
BM_CHECKED bm_status bm_lines_all(const char *path, size_t most, char **out);

/* The number of that line, from 1. */
size_t bm_lines_number(const bm_lines *l);

/* Makes room for `needed` bytes in *text, which has *room of them and grows to
 * twice as many; *text may be NULL at first. Fails with BM_ERR_MEMORY, which
 * names the file. */
BM_CHECKED bm_status bm_lines_reserve(const char *path, char **text,
                                      size_t *room, size_t needed);

#endif
