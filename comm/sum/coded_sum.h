/*
 * coded_sum.h - the ordered sum of vectors that travel as codes (code.h), with
 * error feedback on both ways. With ^ for what becomes of a vector that is
 * encoded and decoded:
 *
 *     worker k    y = x_k + r_k              y^ goes to the owners of slices
 *                 r_k <- y - y^              r_k: of worker k, wherever it is
 *     owner       mean = weighted mean of the y^, by the tree of sum_tree.c
 *                 after = what `work` makes of it
 *       MOVES     d = after - common         d^ goes to all
 *       NEW       d = after + rest           d^ goes to all
 *                 rest <- d - d^
 *     all         common <- common + d^, or d^
 *
 * So nothing is lost but sent later: sent + r_k is what was to be sent, and in
 * MOVES what the common vector still lacks is in the next d. Pieces that are
 * exact have no residuals, and the owner's `after` is then common, bit for bit.
 *
 * Slices are whole units of the plan. The bits of all this depend on the
 * workers' vectors and weights alone, not on the number of ranks. A worker of
 * weight zero sends nothing and keeps its residual.
 *
 * An update sends, if all workers have data, of a vector of B bytes in code
 *
 *     m (B - B_r) + (P - 1) B_r
 *
 * from rank r of P, which hosts m workers and owns B_r of the bytes.
 */
#ifndef BM_COMM_SUM_CODED_SUM_H
#define BM_COMM_SUM_CODED_SUM_H

#include "comm/code/code_plan.h"
#include "comm/sum/sum.h"

typedef struct bm_coded_sum bm_coded_sum;

typedef enum bm_coded_mode { BM_CODED_CHANGE, BM_CODED_VALUE } bm_coded_mode;

/*
 * Collective. Takes over the plan, whether it succeeds or not. The comm is
 * borrowed.
 */
BM_CHECKED bm_status bm_coded_sum_open(bm_coded_sum **out, bm_comm *comm,
                                       bm_code_plan *plan, int workers,
                                       const char *coordinator,
                                       bm_coded_mode mode);
void bm_coded_sum_close(bm_coded_sum *c);

/* This rank's slice; its x is NULL. */
bm_slice bm_coded_sum_slice(const bm_coded_sum *c);

/*
 * Takes in the vector of the next worker hosted here: n floats, which are
 * changed. False: with the residual some are no numbers, it has weight 0.
 */
bool bm_coded_sum_add(bm_coded_sum *c, int worker, float *x, double weight);

/* Collective, after all workers were added: as bm_sum_update, with a unit for
 * each piece. */
BM_CHECKED bm_status bm_coded_sum_update(bm_coded_sum *c, bm_sum_work *work,
                                         void *self, double *weight);

/* As bm_sum_common and bm_sum_allgather; it is each rank's own. */
float *bm_coded_sum_common(const bm_coded_sum *c);
BM_CHECKED bm_status bm_coded_sum_allgather(bm_coded_sum *c);

/* Collective. x, n floats, = all ranks' slices, exactly. */
BM_CHECKED bm_status bm_coded_sum_gather(bm_coded_sum *c, const float *part,
                                         float *x);

/* The workers hosted here: [*first, *last). */
void bm_coded_sum_hosted(const bm_coded_sum *c, int *first, int *last);

/* What is kept back: r_k of a worker hosted here, n floats; in NEW `rest`, of
 * this rank's slice. NULL: nothing ever is. */
float *bm_coded_sum_residual(const bm_coded_sum *c, int worker);
float *bm_coded_sum_rest(const bm_coded_sum *c);

/* By the formula, the most that any of `size` ranks sends. */
BM_CHECKED bm_status bm_coded_sum_bytes(const bm_code_plan *plan, int size,
                                        int workers, const char *coordinator,
                                        double *out);

#endif
