/*
 * code_plan.h - how a vector is cut for a code.
 *
 *     pieces    coded one by one: columns, or chunks of BM_SUM_CHUNK
 *     units     pieces that stay together: unit c has those that begin in
 *               chunk c, and may be empty
 *     slices    of one rank each: whole units
 *
 * A piece that the code would not make shorter goes as it is, and so do
 * statistics, at the end of the vector: a variance must not become negative.
 */
#ifndef BM_COMM_CODE_CODE_PLAN_H
#define BM_COMM_CODE_CODE_PLAN_H

#include "comm/code/code.h"
#include "core/status.h"

typedef struct bm_code_plan {
    bm_code code;
    size_t n, n_learned; /* of the vector */
    size_t n_pieces, n_units;
    size_t *start;  /* [n_pieces + 1]: elements */
    size_t *byte;   /* [n_pieces + 1]: where their codes begin */
    size_t *unit;   /* [n_units + 1]: pieces */
    size_t longest; /* unit, in elements */
} bm_code_plan;

/*
 * For n floats, of which those from n_learned on are statistics. Columns end at
 * edge[0] < edge[1] < ... < n, and at n; so many edges.
 */
BM_CHECKED bm_status bm_code_plan_make(bm_code_plan *out, bm_code code,
                                       size_t n, size_t n_learned,
                                       const size_t *edge, size_t edges);
void bm_code_plan_free(bm_code_plan *p);

/* The slices of `size` ranks, as bm_slices_cut: rank r's units are
 * [first[r], first[r + 1]). */
BM_CHECKED bm_status bm_code_plan_cut(const bm_code_plan *p, int size,
                                      const char *coordinator, size_t *first);

/* Is this piece exact? If not, it is of the plan's code. */
bool bm_code_plan_exact(const bm_code_plan *p, size_t piece);

/* One piece, into its code or out of it. */
void bm_code_plan_encode(const bm_code_plan *p, size_t piece, const float *x,
                         unsigned char *code);
void bm_code_plan_decode(const bm_code_plan *p, size_t piece,
                         const unsigned char *code, float *x);

#endif
