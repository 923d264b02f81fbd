/*
 * plan_parts.h - a plan from the inside, for plan.c, plan_cut.c and
 * plan_size.c.
 */
#ifndef BM_IO_BATCH_PLAN_PARTS_H
#define BM_IO_BATCH_PLAN_PARTS_H

#include "io/batch/plan.h"

struct bm_plan {
    const bm_dataset *d; /* borrowed */
    bm_plan_settings set;
    int workers, active; /* all, and those that have shares */
    uint64_t key;        /* of the epoch's random numbers, see bm_plan_cut */
    size_t n;            /* units with sequences */
    size_t *units;       /* [n]: by block, then by worker */
    int32_t *owner;      /* [n]: the worker that trains on it */
    int64_t blocks;
    size_t *start; /* [blocks + 1]: where the blocks begin */
};

/* Are units and sequences shuffled before they are sorted in windows? */
static inline bool bm_order_is_shuffled(bm_order order)
{
    return order == BM_ORDER_RANDOM || order == BM_ORDER_LAPLACE;
}

/* *batches: the number of mini-batches if n sequences of these lengths are
 * sorted together and cut by s->frames > 0. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_plan_count(const bm_plan_settings *s,
                                   const int32_t *lengths, size_t n,
                                   size_t *batches);

#endif
