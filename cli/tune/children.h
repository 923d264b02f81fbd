/*
 * children.h - runs commands of this program side by side, each in a session of
 * its own, so that Ctrl-C reaches only this process. They get SIGTERM if it
 * dies.
 */
#ifndef BM_CLI_TUNE_CHILDREN_H
#define BM_CLI_TUNE_CHILDREN_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { BM_CHILDREN = 256 }; /* the most at a time */

typedef struct bm_children {
    size_t n;
    struct {
        pid_t process;
        size_t id; /* the caller's */
    } list[BM_CHILDREN];
} bm_children;

/* Starts `bmuf words[1] ..`, words ended by NULL, with stdout and stderr at the
 * end of the file `log`. Fails with BM_ERR_MEMORY or BM_ERR_CREATE. */
BM_CHECKED bm_status bm_children_start(bm_children *c, size_t id,
                                       char *const *words, const char *log);

/* Waits up to a tenth of a second. True if one has ended: its id, and its exit
 * code, or 128 + n after signal n. */
bool bm_children_wait(bm_children *c, size_t *id, int *code);

/* Sends a signal to all. */
void bm_children_signal(const bm_children *c, int number);

#endif
