/*
 * file.h - atomic writes of files: write under a temporary name, fsync, rename,
 * fsync of the directory. A crash leaves the old file or the new one.
 *
 *     bm_file_temporary(path, temporary, sizeof temporary);
 *     ... write and close `temporary`; on failure unlink it ...
 *     BM_TRY(bm_file_commit(temporary, path));
 */
#ifndef BM_CORE_FILE_H
#define BM_CORE_FILE_H

#include "core/status.h"

#include <stddef.h>

/* "dir/.name.tmp" for "dir/name", truncated to `room`. The name is predictable,
 * so that the next run overwrites the file of a killed one. */
void bm_file_temporary(const char *path, char *out, size_t room);

/* Renames a closed file to `path`, durably. Removes `temporary` and fails with
 * BM_ERR_IO if that is impossible. */
BM_CHECKED bm_status bm_file_commit(const char *temporary, const char *path);

/* Writes a whole file from memory by the steps above. Fails with BM_ERR_CREATE
 * or BM_ERR_IO; `path` is unchanged then. */
BM_CHECKED bm_status bm_file_write(const char *path, const void *data,
                                   size_t size);

/* Checks early that bm_file_write could create `path`. Fails with BM_ERR_CREATE
 * if it is a directory or the directory is not writable. */
BM_CHECKED bm_status bm_file_try(const char *path);

/* Reads a whole file into *out, with a '\0' behind it; free() it. Fails with
 * BM_ERR_MISSING, BM_ERR_IO, BM_ERR_MEMORY, or BM_ERR_FORMAT for a file of more
 * than `most` bytes. */
BM_CHECKED bm_status bm_file_read(const char *path, size_t most, char **out,
                                  size_t *size);

/* Creates a directory and its parents; no-op if it exists. Fails with
 * BM_ERR_CREATE. */
BM_CHECKED bm_status bm_file_make_directory(const char *path);

#endif
