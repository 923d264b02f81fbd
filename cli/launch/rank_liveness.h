/*
 * rank_liveness.h - detects dead ranks. Each rank locks a file of its own; the
 * kernel drops the lock when the rank dies. The supervisor checks the locks, as
 * mpirun may miss a death while the ranks are in MPI_Init.
 *
 * Only ranks on the supervisor's host are seen.
 */
#ifndef BM_CLI_LAUNCH_RANK_LIVENESS_H
#define BM_CLI_LAUNCH_RANK_LIVENESS_H

/* In the supervisor's child: puts the directory into the environment of the
 * ranks. */
void bm_rank_liveness_export(const char *directory);

/* In a rank: locks its file at the start, and removes it before a clean exit.
 * No-op without bm_rank_liveness_export, or if the directory is not there. */
void bm_rank_liveness_begin(void);
void bm_rank_liveness_end(void);

/* In the supervisor: the lowest rank that has a file but no lock; -1: none. */
int bm_rank_liveness_dead(const char *directory, long ranks);

#endif
