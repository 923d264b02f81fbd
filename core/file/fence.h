/*
 * fence.h - shuts out what is left of an earlier attempt at a run: a process
 * that was stopped, or cut off by its network, and goes on after a later
 * attempt has begun.
 *
 * DIRECTORY/attempt names the newest attempt, "3 host 4711". A process joins
 * one attempt. bm_file_replace_commit and bm_journal_write compare, and write
 * nothing once the file names another. An earlier process that was stopped
 * between the comparison and the rename fails, too: the later attempt removes
 * temporary files when it starts.
 */
#ifndef BM_CORE_FILE_FENCE_H
#define BM_CORE_FILE_FENCE_H

#include "core/status.h"

#include <stdbool.h>

/* An environment variable: the attempt that a supervisor has begun. */
#define BM_FENCE_ATTEMPT "BMUF_ATTEMPT"

enum { BM_FENCE_ROOM = 200 };

/* Begins the next attempt, numbered one more than the file says, at least
 * `least`; own <- the text of the file. Call it with the directory locked.
 * Fails as bm_file_write does. */
BM_CHECKED bm_status bm_fence_begin(const char *directory, int least,
                                    char own[BM_FENCE_ROOM]);

/* The number of the attempt in `own`; 0: the text is invalid. */
int bm_fence_number(const char *own);

/* From now on this process belongs to this attempt; leave: to none.
 * Thread-safe. */
void bm_fence_join(const char *directory, const char *own);
void bm_fence_leave(void);

/* Fails with BM_ERR_COMM if a later attempt has begun. A file that cannot be
 * read is no failure. Thread-safe. */
BM_CHECKED bm_status bm_fence_check(void);

/* The same without a message. */
bool bm_fence_stands(void);

#endif
