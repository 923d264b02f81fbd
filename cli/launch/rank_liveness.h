/*
 * rank_liveness.h - which ranks are still there, told by the kernel: each holds
 * a lock on a file of its own, which dies with it. The supervisor looks at the
 * files, as mpirun may fail to notice a death while the ranks meet.
 *
 * Only ranks of the supervisor's host take part.
 */
#ifndef BM_CLI_LAUNCH_RANK_LIVENESS_H
#define BM_CLI_LAUNCH_RANK_LIVENESS_H

/* For the supervisor's child: ranks started from here sign in this directory.
 */
void bm_rank_liveness_offer(const char *directory);

/* For a rank, first of all, and when it leaves in order. Without an offer they
 * do nothing. */
void bm_rank_liveness_sign(void);
void bm_rank_liveness_leave(void);

/* The first of so many ranks that has signed, not left, and is gone; -1: none.
 */
int bm_rank_liveness_missing(const char *directory, long ranks);

#endif
