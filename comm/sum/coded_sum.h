/*
 * coded_sum.h - the ordered sum of vectors that travel as codes (code.h), with
 * error feedback in both directions. ^ marks a vector after it was encoded and
 * decoded:
 *
 *     worker k    y = x_k + r_k              y^ is sent to the owners of slices
 *                 r_k <- y - y^              r_k follows worker k to any rank
 *     owner       mean = weighted mean of the y^, by the tree of sum_tree.c
 *                 after = what `work` makes of it
 *       CHANGE    d = after - common         d^ is sent to all ranks
 *       VALUE     d = after + rest           d^ is sent to all ranks
 *                 rest <- d - d^
 *     all         common <- common + d^ (CHANGE) or d^ (VALUE)
 *
 * So nothing is lost, only sent later: the sum of what was sent and r_k is what
 * was to be sent, and in mode CHANGE the next d contains what the common vector
 * still lacks. Exact pieces have no residuals, and common becomes the owner's
 * `after`, bit for bit.
 *
 * Slices are whole groups of the plan. The bits depend on the workers' vectors
 * and weights alone, not on the number of ranks. A worker of weight zero sends
 * nothing and keeps its residual.
 *
 * If all workers have data, an update of a vector of B encoded bytes sends
 *
 *     m (B - B_r) + (P - 1) B_r
 *
 * bytes from rank r of P, which hosts m workers and owns B_r of the bytes.
 */
#ifndef BM_COMM_SUM_CODED_SUM_H
#define BM_COMM_SUM_CODED_SUM_H

#include "comm/code/code_plan.h"
#include "comm/sum/sum.h"

typedef struct bm_coded_sum bm_coded_sum;

/* What ranks receive: the change of the common vector, or its new value. */
typedef enum bm_coded_mode { BM_CODED_CHANGE, BM_CODED_VALUE } bm_coded_mode;

/*
 * Collective. Takes ownership of the plan, also on failure. The comm is
 * borrowed. Fails with BM_ERR_MEMORY, or BM_ERR_CONFIG on an unknown
 * coordinator; all ranks fail together.
 */
BM_CHECKED bm_status bm_coded_sum_open(bm_coded_sum **out, bm_comm *comm,
                                       bm_code_plan *plan, int workers,
                                       const char *coordinator,
                                       bm_coded_mode mode);
void bm_coded_sum_close(bm_coded_sum *c); /* NULL: no-op */

/* This rank's slice; its x is NULL. */
bm_slice bm_coded_sum_slice(const bm_coded_sum *c);

/*
 * Adds the vector x [n] of the next worker hosted here, and overwrites x. If x,
 * with the residual, is not finite: adds the worker with weight 0, keeps its
 * residual, and returns false.
 */
bool bm_coded_sum_add(bm_coded_sum *c, int worker, float *x, double weight);

/*
 * The same where workers' vectors are encoded elsewhere, on a device: call
 * bm_coded_sum_elsewhere once, and then bm_coded_sum_add_code, with a code of
 * the whole vector. An update then changes only this rank's slice of the common
 * vector, and bm_coded_sum_back returns d^ of all slices, until the next one.
 * There are no residuals of workers here.
 */
void bm_coded_sum_elsewhere(bm_coded_sum *c);
void bm_coded_sum_add_code(bm_coded_sum *c, int worker, const void *code,
                           double weight); /* weight 0: code is not read */
const void *bm_coded_sum_back(const bm_coded_sum *c);
const bm_code_plan *bm_coded_sum_plan(const bm_coded_sum *c);

/* Collective, after all workers were added. As bm_sum_update, with one group
 * for each piece. */
BM_CHECKED bm_status bm_coded_sum_update(bm_coded_sum *c, bm_sum_work *work,
                                         void *self, double *weight);

/* As bm_sum_common and bm_sum_allgather; ranks do not share the memory. */
float *bm_coded_sum_common(const bm_coded_sum *c);
BM_CHECKED bm_status bm_coded_sum_allgather(bm_coded_sum *c);

/* Collective. x [n] = the slices of all ranks, not encoded. */
BM_CHECKED bm_status bm_coded_sum_gather(bm_coded_sum *c, const float *slice,
                                         float *x);

/* The workers hosted here: *first to *last - 1. */
void bm_coded_sum_hosted(const bm_coded_sum *c, int *first, int *last);

/* State for a restart, owned by c: r_k [n] of a worker hosted here, and in mode
 * VALUE `rest` of this rank's slice. NULL if the code is exact. */
float *bm_coded_sum_residual(const bm_coded_sum *c, int worker);
float *bm_coded_sum_rest(const bm_coded_sum *c);

/* *out = the most bytes that any of `size` ranks sends, by the formula. Fails
 * with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_coded_sum_bytes(const bm_code_plan *plan, int size,
                                        int workers, const char *coordinator,
                                        double *out);

#endif
