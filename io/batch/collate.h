/*
 * collate.h - makes the mini-batches of a share: sequences side by side, on a
 * backend.
 */
#ifndef BM_IO_BATCH_COLLATE_H
#define BM_IO_BATCH_COLLATE_H

#include "compute/backend.h"
#include "io/batch/share.h"

/* Starts with `be` and `d` set, both borrowed, and all other fields zero. Has
 * room for the largest mini-batch so far; free with bm_collator_free. */
typedef struct bm_collator {
    bm_backend *be;
    const bm_dataset *d;
    bm_batch batch;
    bm_stage *stage;
    bm_stored *packed; /* [B] */
    int32_t *frames, *count;
    int64_t *id;
    int32_t *classes;
    size_t sequences_capacity, classes_capacity;
} bm_collator;

void bm_collator_free(bm_collator *c);

/* *out: mini-batch `step` of a share that was read, borrowed until the next
 * call; NULL past the end of the share. Fails with BM_ERR_MEMORY, or as the
 * backend does. */
BM_CHECKED bm_status bm_collate(bm_collator *c, const bm_share *share,
                                int64_t step, const bm_batch **out);

#endif
