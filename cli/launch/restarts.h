/*
 * restarts.h - what the supervisor does with a run between two attempts: it
 * holds the lock, numbers the attempts, counts restarts and decides whether
 * there is one more.
 */
#ifndef BM_CLI_LAUNCH_RESTARTS_H
#define BM_CLI_LAUNCH_RESTARTS_H

#include "cli/launch/attempt.h"
#include "core/file/fence.h"

#include <limits.h>
#include <stdint.h>
#include <time.h>

/* The checkpoint that was written last. One of a later block may have stayed, if
 * it is damaged and training skipped it. */
typedef struct bm_newest {
    int64_t block;
    struct timespec written;
} bm_newest;

typedef struct bm_restarts {
    char run[PATH_MAX];    /* absolute; "": nothing is restarted */
    char shared[PATH_MAX]; /* for heartbeats of other hosts; "": none */
    char own[BM_FENCE_ROOM];
    int lock;
    long most, made;
    int returns;     /* restarts for hosts that were back, not in `made` */
    bm_newest began; /* when the last attempt began */
    struct timespec config; /* when config.ini was written before this command;
                               0: there was none */
} bm_restarts;

/* Creates and locks the directory of the run; NULL: nothing will be restarted.
 * Fails as bm_run_claim. Close it after a failure, too. */
BM_CHECKED bm_status bm_restarts_open(bm_restarts *r, const char *run,
                                      long most);
void bm_restarts_close(bm_restarts *r);

/* Begins the next attempt: r->own. Fails as bm_fence_begin. */
BM_CHECKED bm_status bm_restarts_begin(bm_restarts *r);

/* Whether config.ini has the settings of this command, as an attempt has come so
 * far as to write it. From then on attempts use that: the user may edit, move or
 * remove the configuration. */
bool bm_restarts_has_settings(const bm_restarts *r);

/*
 * After an attempt: whether another one follows, which is then counted, logged
 * and written to the journal. Not after a stop, nor after what would happen
 * again: exit codes of settings, data, memory and disks, ranks that never
 * started, or no new checkpoint since the restart before.
 */
bool bm_restarts_another(bm_restarts *r, const bm_outcome *o);

#endif
