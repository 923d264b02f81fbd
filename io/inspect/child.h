/*
 * child.h - work that may crash, in a process of its own: HDF5 does on some
 * damaged files. The child says lines, the parent hears them.
 */
#ifndef BM_IO_INSPECT_CHILD_H
#define BM_IO_INSPECT_CHILD_H

#include "core/status.h"

#include <stdint.h>
#include <stdio.h>

typedef struct bm_child {
    void (*work)(void *self, FILE *say);        /* in the child */
    void (*hear)(void *self, const char *line); /* in the parent */
    void *self;
    uint64_t memory;  /* bytes of address space at most; 0: no limit */
    unsigned seconds; /* of computing at most; 0: no limit */
} bm_child;

/* Returns when the child has ended; *ended is 0 if its work was done, else the
 * signal that ended it, or -1. Call it where no other thread holds a lock. */
BM_CHECKED bm_status bm_child_run(const bm_child *child, int *ended);

#endif
