/*
 * halts.h - runs of equations.h that are stopped and resumed; and momentum SGD
 * on them in double precision, for tests that compute a whole algorithm again.
 */
#ifndef BM_TESTS_SUPPORT_REFERENCE_HALTS_H
#define BM_TESTS_SUPPORT_REFERENCE_HALTS_H

#include "tests/support/reference/equations.h"

/* What a checkpoint holds, in memory. */
typedef struct halt {
    bm_position at;
    bm_restart_numbers restart;
    int64_t blocks;
    size_t n;
    bm_state *states; /* whose x are copies */
} halt;

/* save_job: between two blocks; restore_job: into a job just started. */
void save_job(job *j, int64_t blocks, halt *to);
void restore_job(job *j, const halt *from);
void free_halt(halt *h);

/* The same bits on these ranks as on one; with one rank this shows only that a
 * run repeats its bits. */
void assert_ranks_change_no_bits(bm_comm *comm, problem p,
                                 const char *const *settings);

/* The same bits in one go, and stopped and resumed after each block. */
void assert_halts_change_no_bits(bm_comm *comm, problem p,
                                 const char *const *settings);

/* The mean gradient of a mini-batch at w, in double; its samples, 0: none. */
double gradient_of(const problem *p, bm_position at, int worker, int64_t step,
                   const double *w, double *g);

/* A share of momentum SGD: v <- mu v - rate g, w <- w + v. */
void learn_share(const problem *p, bm_position at, int worker, double mu,
                 double rate, double *w, double *v);

/* The block that comes t-th. */
bm_position position_of(int t);

#endif
