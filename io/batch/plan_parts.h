/*
 * plan_parts.h - what plan.c makes and plan_cut.c cuts, and how the latter
 * counts; for the plan's own files.
 */
#ifndef BM_IO_BATCH_PLAN_PARTS_H
#define BM_IO_BATCH_PLAN_PARTS_H

#include "io/batch/plan.h"

struct bm_plan {
    const bm_dataset *d; /* borrowed */
    bm_plan_settings set;
    int workers;
    uint64_t key;   /* of the epoch; mini-batches have streams within it */
    size_t n;       /* units with sequences */
    size_t *units;  /* [n]: block by block, in a block worker by worker */
    int32_t *owner; /* [n]: the worker that trains on it */
    int64_t blocks;
    size_t *start; /* [blocks + 1]: where the blocks begin */
};

/* How many mini-batches sequences of these lengths make that are sorted all
 * together, and cut by s->frames > 0. */
BM_CHECKED bm_status bm_plan_count(const bm_plan_settings *s,
                                   const int32_t *lengths, size_t n,
                                   size_t *batches);

#endif
