/*
 * slices.h - how a vector is cut into slices, one for each rank. A rank
 * coordinates its slice: it sums and filters those elements.
 */
#ifndef BM_COMM_SLICES_H
#define BM_COMM_SLICES_H

#include "core/status.h"

#include <stddef.h>

/* Elements that are summed and filtered at a time, while in the first cache.
 * Slices start at multiples of it. */
enum { BM_SUM_CHUNK = 1024 };

/* A slice: elements [offset, offset + count) of a vector. */
typedef struct bm_slice {
    size_t offset, count;
    float *x;      /* count floats, owned by the sum, may be changed */
    double weight; /* of all workers, from the last scatter */
} bm_slice;

/*
 * Cuts n elements for `size` ranks: rank r's slice is [start[r], start[r + 1]);
 * start has size + 1 elements. `coordinator` is "sharded" (slices of nearly
 * equal numbers of chunks) or "root" (rank 0's slice is the whole vector).
 * Fails with BM_ERR_CONFIG on another name.
 */
BM_CHECKED bm_status bm_slices_cut(size_t n, int size, const char *coordinator,
                                   size_t *start);

#endif
