/*
 * child.h - work that may crash, in a child process: HDF5 does on some damaged
 * files. The child writes lines to a pipe that the parent reads.
 */
#ifndef BM_CORE_CHILD_H
#define BM_CORE_CHILD_H

#include "core/status.h"

#include <stdint.h>
#include <stdio.h>

typedef struct bm_child {
    /* Runs in the child; writes lines to `out`. */
    void (*work)(void *self, FILE *out);
    /* Runs in the parent for every complete line, without its newline. */
    void (*receive)(void *self, const char *line);
    void *self;
    uint64_t memory;  /* limit of the address space in bytes; 0: no limit */
    unsigned seconds; /* limit of CPU time; 0: no limit */
} bm_child;

/* Runs the work and returns when the child has ended. *ended: 0 if the work
 * returned, the signal that killed the child, or -1; also -1 if the program
 * ignores SIGCHLD, as the system then does not say. Fails with BM_ERR_IO or
 * BM_ERR_MEMORY if no child can be started. Call it while no other thread holds
 * a lock: the child is a fork. */
BM_CHECKED bm_status bm_child_run(const bm_child *child, int *ended);

#endif
