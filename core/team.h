/*
 * team.h - does pieces of work on several threads, and takes their results in
 * order, as soon as each of them and all before it are there. At most a few
 * pieces for each thread are in memory.
 */
#ifndef BM_CORE_TEAM_H
#define BM_CORE_TEAM_H

#include "core/status.h"

#include <stdatomic.h>
#include <stddef.h>

typedef struct bm_team_work {
    void *self;
    /* Called by one thread at a time. *piece <- the next one; NULL: the end, or
     * *stop became true while it waited. A failure ends the work. */
    bm_status (*next)(void *self, const atomic_bool *stop, void **piece);
    /* Called on any of the threads, `member` in [0, members). */
    void (*work)(void *self, size_t member, void *piece);
    /* Called in order on the thread of bm_team_run; frees the piece. A failure
     * ends the work; pieces that are left are freed by drop. */
    bm_status (*take)(void *self, void *piece);
    void (*drop)(void *self, void *piece);
} bm_team_work;

/* Returns the first failure of next or take, or BM_ERR_MEMORY if a thread
 * cannot be started. */
BM_CHECKED bm_status bm_team_run(const bm_team_work *w, size_t members);

#endif
