/*
 * scratch.h - a folder bmuf-XXXXXX in TMPDIR, for the shared memory, sockets
 * and lock files of a job. The supervisor removes it at its end. What a killed
 * supervisor has left is removed when the next one starts.
 */
#ifndef BM_CLI_LAUNCH_SCRATCH_H
#define BM_CLI_LAUNCH_SCRATCH_H

#include "core/status.h"

typedef struct bm_scratch_folder {
    char path[1024];
    int lock; /* held by a living supervisor */
} bm_scratch_folder;

/*
 * Removes the folders in TMPDIR that belong to dead supervisors of this user on
 * this host, then makes one for `ranks` ranks. Close with bm_scratch_folder_close,
 * which removes it.
 *
 * Fails with BM_ERR_CREATE if TMPDIR is not a writable folder, or has too
 * little room for Open MPI to start; logs a warning if there is too little for
 * shared memory.
 */
BM_CHECKED bm_status bm_scratch_folder_open(bm_scratch_folder *s, long ranks);
void bm_scratch_folder_close(bm_scratch_folder *s);

#endif
