/*
 * audited.h - which blocks are audited: [job] audit. Each worker's share of such
 * a block is computed a second time, on another rank if there is one
 * (bmuf/trainer/audit.h). All shares of a block or none, so that no rank waits
 * for one that has more to do.
 */
#ifndef BM_IO_BATCH_AUDITED_H
#define BM_IO_BATCH_AUDITED_H

#include "io/batch/plan.h"

typedef struct bm_audit_settings {
    double fraction; /* of the blocks; 0: none */
    uint64_t seed;
} bm_audit_settings;

/* The same on all ranks, and for any number of them. */
bool bm_audited(const bm_audit_settings *set, bm_position at);

/* The workers whose shares a rank computes again are those of the rank before:
 * [*first, *last). A rank that is alone has its own. */
void bm_audited_workers(int workers, int ranks, int rank, int *first,
                        int *last);

#endif
