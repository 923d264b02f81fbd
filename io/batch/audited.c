#include "io/batch/audited.h"

#include "comm/comm.h"
#include "core/rng.h"

bool bm_audited(const bm_audit_settings *set, bm_position at)
{
    bm_rng draw = bm_rng_make(set->seed, "audit", 0);

    if (set->fraction <= 0)
        return false;
    draw.key = bm_rng_fork(draw.key, (uint64_t)at.epoch);
    draw.next = (uint64_t)at.block;
    return bm_rng_uniform(&draw) < set->fraction;
}

void bm_audited_workers(int workers, int ranks, int rank, int *first, int *last)
{
    int before = (rank + ranks - 1) % ranks;

    *first = bm_first_worker(workers, ranks, before);
    *last = bm_first_worker(workers, ranks, before + 1);
}
