/*
 * file_lock.h - keeps two processes from working in one directory.
 */
#ifndef BM_CORE_FILE_FILE_LOCK_H
#define BM_CORE_FILE_FILE_LOCK_H

#include "core/status.h"

/* Creates and locks directory/name; *out stays open while the lock is held, and
 * the kernel drops it when the process ends. Fails with BM_ERR_CREATE if
 * another process holds it, whose host and number are in the message, or if it
 * cannot be created, and as bm_path_join does. Where the file system has no
 * locks, it logs a warning and finds processes of this host only. */
BM_CHECKED bm_status bm_file_lock(int *out, const char *directory,
                                  const char *name);

/* Removes the file and drops the lock. No-op if lock < 0. */
void bm_file_unlock(int lock, const char *directory, const char *name);

#endif
