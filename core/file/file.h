/*
 * file.h - opening files that a user named, and replacing files atomically:
 * write under a temporary name, fsync, rename, fsync of the directory. A crash
 * leaves the old file or the new one.
 *
 *     bm_file_replacement r;
 *
 *     BM_TRY(bm_file_replace_begin(&r, path));
 *     status = bm_file_replace_write(&r, data, size); // or to r.fd, r.stream
 *     if (status == BM_OK)
 *         status = bm_file_replace_commit(&r, true);
 *     bm_file_replace_abort(&r); // no-op after a commit
 */
#ifndef BM_CORE_FILE_FILE_H
#define BM_CORE_FILE_FILE_H

#include "core/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* ---- reading ------------------------------------------------------------- */

/* Opens a regular file for reading; close(*out), fclose(*out). A directory, a
 * pipe, a socket or a device is refused at once, with BM_ERR_MISSING, as is a
 * file that does not exist or may not be read. Fails with BM_ERR_IO or
 * BM_ERR_MEMORY (too many open files), too. */
BM_CHECKED bm_status bm_file_open_regular(int *out, const char *path);
BM_CHECKED bm_status bm_file_open_stream(FILE **out, const char *path);

/* Reads a whole regular file into *out, with a '\0' after it; free() it. Fails
 * as bm_file_open_regular does, or with BM_ERR_FORMAT for a file of more than
 * `most` bytes. */
BM_CHECKED bm_status bm_file_read(const char *path, size_t most, char **out,
                                  size_t *size);

/* ---- replacing ----------------------------------------------------------- */

/* The most bytes of a name, without a directory, and of a path that can be
 * replaced: its temporary name has more. */
enum {
    BM_FILE_MORE = 14, /* of ".0123abcd." and ".tmp" */
    BM_FILE_LONGEST_NAME = NAME_MAX - BM_FILE_MORE,
    BM_FILE_LONGEST_PATH = PATH_MAX - 1 - BM_FILE_MORE
};

/* A file that is being written. It replaces `path` when it is committed. */
typedef struct bm_file_replacement {
    int fd;       /* open for writing; -1 once closed */
    FILE *stream; /* the same as a stream, after bm_file_replace_stream */
    bool synced;  /* by bm_file_replace_sync; nothing may be written after */
    char path[PATH_MAX];
    char temporary[PATH_MAX]; /* "" once it was renamed or removed */
} bm_file_replacement;

/* Creates a temporary file with a new, unpredictable name in the directory of
 * `path`: "dir/.0123abcd.name.tmp" for "dir/name". Fails with BM_ERR_CREATE if
 * the directory is missing or not writable or if `path` is a directory or a
 * device, with BM_ERR_IO if the disk is full. */
BM_CHECKED bm_status bm_file_replace_begin(bm_file_replacement *r,
                                           const char *path);

/* Opens r->stream, which commit and abort close. */
BM_CHECKED bm_status bm_file_replace_stream(bm_file_replacement *r);

/* Writes to r->fd. Fails with BM_ERR_IO. */
BM_CHECKED bm_status bm_file_replace_write(bm_file_replacement *r,
                                           const void *data, size_t size);

/* Before a durable commit: what was written is on the disk when this returns,
 * and can be read back from r->temporary. Fails with BM_ERR_IO. */
BM_CHECKED bm_status bm_file_replace_sync(bm_file_replacement *r);

/* Closes the temporary file and renames it to `path`; `durable`: so that it
 * survives a power cut. Fails with BM_ERR_IO, also for earlier failures of
 * r->stream, and as bm_fence_check, after removing the temporary file. */
BM_CHECKED bm_status bm_file_replace_commit(bm_file_replacement *r,
                                            bool durable);

/* Closes and removes the temporary file. No-op after a commit, after another
 * abort and on {0}. */
void bm_file_replace_abort(bm_file_replacement *r);

/* Is `name`, without a directory, a name of a temporary file for a file whose
 * name begins and ends so? It is left over if the process was killed. */
bool bm_file_is_temporary(const char *name, const char *beginning,
                          const char *ending);

/* Removes such files from a directory; no process may be writing them. Fails
 * with BM_ERR_IO. */
BM_CHECKED bm_status bm_file_remove_temporaries(const char *directory,
                                                const char *beginning,
                                                const char *ending);

/* Replaces a whole file from memory, durably. Fails as begin and write do;
 * `path` is unchanged then. */
BM_CHECKED bm_status bm_file_write(const char *path, const void *data,
                                   size_t size);

/* Reserves the first `size` bytes of a file that is open for writing, as
 * posix_fallocate: returns 0 or its error, but not EINTR. */
int bm_file_reserve(int fd, off_t size);

/* Checks early that `path` could be replaced. Fails as bm_file_replace_begin
 * does. */
BM_CHECKED bm_status bm_file_try(const char *path);

/* ---- directories --------------------------------------------------------- */

/* Is there a folder of this path, or a link to one? */
bool bm_is_folder(const char *path);

/* Do both paths lead to one file or folder? */
bool bm_is_same_file(const char *path, const char *other);

/* Creates a directory and its parents; no-op if it exists. Fails with
 * BM_ERR_CREATE. */
BM_CHECKED bm_status bm_file_make_directory(const char *path);

/* out [room] <- the last name in a path: "1" of "run/1/". */
void bm_file_name(const char *path, char *out, size_t room);

#endif
