/*
 * thread_pool.h - the threads of a backend. They run the parts of one operation
 * at a time.
 */
#ifndef BM_COMPUTE_CPU_THREAD_POOL_H
#define BM_COMPUTE_CPU_THREAD_POOL_H

#include "core/status.h"

#include <stddef.h>

typedef struct bm_thread_pool bm_thread_pool;

/* threads > 0: the caller's own and threads - 1 others. Fails with BM_ERR_MEMORY
 * if they cannot be started. */
BM_CHECKED bm_status bm_thread_pool_open(bm_thread_pool **out, size_t threads);
void bm_thread_pool_close(bm_thread_pool *pool); /* pool may be NULL */

size_t bm_thread_pool_threads(const bm_thread_pool *pool);

/* Calls work(self, part) for part = 0 .. parts - 1, in any order and on any
 * thread. Returns when all have returned. Must not be called from `work`. */
void bm_thread_pool_run(bm_thread_pool *pool, size_t parts,
                        void (*work)(void *self, size_t part), void *self);

/* The start of part number `part` of n items; a multiple of `grain`, or n. */
static inline size_t bm_part(size_t n, size_t grain, size_t parts, size_t part)
{
    size_t grains = (n + grain - 1) / grain * part / parts * grain;

    return grains < n ? grains : n;
}

#endif
