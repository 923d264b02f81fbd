/*
 * file.h - files that appear whole or not at all: written to a temporary name,
 * fsync, rename, fsync of the directory.
 *
 *     bm_file_temporary(path, temporary, sizeof temporary);
 *     ... write and close `temporary`; on failure unlink it ...
 *     BM_TRY(bm_file_commit(temporary, path));
 */
#ifndef BM_CORE_FILE_H
#define BM_CORE_FILE_H

#include "core/status.h"

#include <stddef.h>

/* "dir/.name.tmp" for "dir/name": predictable, so that what a killed job left
 * behind is found and overwritten. */
void bm_file_temporary(const char *path, char *out, size_t room);

/* Puts a closed file under its name; removes it if that fails. */
BM_CHECKED bm_status bm_file_commit(const char *temporary, const char *path);

/* A whole file from memory, by the steps above. */
BM_CHECKED bm_status bm_file_write(const char *path, const void *data,
                                   size_t size);

/* Whether bm_file_write could put a file there; says so before there is one to
 * lose. */
BM_CHECKED bm_status bm_file_try(const char *path);

/* A whole file into memory, with a '\0' behind it; free() it. A file of more
 * than `most` bytes is BM_ERR_FORMAT, a missing one BM_ERR_MISSING. */
BM_CHECKED bm_status bm_file_read(const char *path, size_t most, char **out,
                                  size_t *size);

/* Makes a directory and those above it; no error if it is there. */
BM_CHECKED bm_status bm_file_make_directory(const char *path);

#endif
