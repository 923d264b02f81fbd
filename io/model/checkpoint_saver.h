/*
 * checkpoint_saver.h - writes checkpoints while training goes on: each rank
 * copies its states, and a thread of its own sends and writes the copies.
 *
 *     BM_TRY(bm_saver_open(&s, comm));
 *     BM_TRY(bm_saver_start(s, paths, &c, &stay, true));
 *     .. training changes the states ..
 *     if (all ranks say bm_saver_done(s))
 *         status = bm_saver_wait(s, &saved);
 *
 * At most one checkpoint is under way.
 */
#ifndef BM_IO_MODEL_CHECKPOINT_SAVER_H
#define BM_IO_MODEL_CHECKPOINT_SAVER_H

#include "io/model/checkpoint.h"

typedef struct bm_saver bm_saver;

/* The comm is borrowed and must outlive it. Each rank by itself; fails with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_saver_open(bm_saver **out, bm_comm *comm);

/* Collective. Waits for a checkpoint that is under way. NULL: no-op. */
void bm_saver_close(bm_saver *s);

/*
 * Collective, with none under way. Begins to write a checkpoint to the paths
 * and, once it is complete, to prune their directories as `stay` says. paths,
 * stay and its blocks are copied; the texts of *c, and its params, must stay as
 * they are until bm_saver_wait. behind: returns when the states are copied, and
 * they may change then; false: returns when all is done, without a copy. Where
 * MPI supports one thread only, it is done at once. Fails with BM_ERR_MEMORY,
 * BM_ERR_COMM or as the backends do; a failure to write comes from
 * bm_saver_wait.
 */
BM_CHECKED bm_status bm_saver_start(bm_saver *s, const char *const *paths,
                                    const bm_checkpoint *c,
                                    const bm_retention *stay, bool behind);

/* Whether one was started that was not waited for; on this rank, whether its
 * wait would return at once. */
bool bm_saver_pending(const bm_saver *s);
bool bm_saver_done(bm_saver *s);

typedef struct bm_saver_report {
    bm_saved saved; /* on rank 0 */
    uint64_t
        copied;    /* bytes of states of this rank; 0: written without a copy */
    double copy_s; /* copying the states of this rank */
    double write_s; /* from then until the files were complete */
} bm_saver_report;

/* Collective, with one under way. Waits for it. Fails as bm_checkpoint_save
 * does, with the same code on all ranks; *out is set all the same. */
BM_CHECKED bm_status bm_saver_wait(bm_saver *s, bm_saver_report *out);

#endif
