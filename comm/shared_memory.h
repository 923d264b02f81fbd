/*
 * shared_memory.h - memory that the ranks of one host share. Each rank has a
 * segment; the other ranks of its host read it in place instead of receiving a copy. The
 * caller synchronizes access, with bm_comm_barrier.
 *
 * If one host cannot share memory, no host does: each rank then has its own
 * segment only, and rank 0 logs a warning once.
 */
#ifndef BM_COMM_SHARED_MEMORY_H
#define BM_COMM_SHARED_MEMORY_H

#include "comm/comm.h"

#include <stdbool.h>

typedef struct bm_shared_memory bm_shared_memory;

/* Collective. `size` zeroed bytes for this rank; ranks may pass different
 * sizes. The comm is borrowed. Fails with BM_ERR_MEMORY or BM_ERR_COMM, on all
 * ranks. */
BM_CHECKED bm_status bm_shared_memory_open(bm_shared_memory **out,
                                           bm_comm *comm, size_t size);
void bm_shared_memory_close(bm_shared_memory *w); /* NULL: no-op */

/* The segment of a rank; NULL: it is not shared with this rank, and its owner
 * has to send it. */
void *bm_shared_memory_segment(const bm_shared_memory *w, int rank);

/* True if any rank can access the segment of another rank. */
bool bm_shared_memory_available(const bm_shared_memory *w);

#endif
