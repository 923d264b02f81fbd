/*
 * code_plan.h - how a vector is cut for a code.
 *
 *     pieces    encoded separately: columns, or chunks of BM_SUM_CHUNK
 *     groups    of consecutive pieces: group c has the pieces that start in
 *               chunk c, and may be empty
 *     slices    one for each rank: whole groups
 *
 * A piece that the code does not make shorter is sent as fp32. So are
 * statistics, at the end of the vector: a variance must not become negative.
 */
#ifndef BM_COMM_CODE_CODE_PLAN_H
#define BM_COMM_CODE_CODE_PLAN_H

#include "comm/code/code.h"
#include "core/status.h"

typedef struct bm_code_plan {
    bm_code code;
    size_t n, n_learned; /* of the vector */
    size_t n_pieces, n_groups;
    size_t *start;  /* [n_pieces + 1]: elements */
    size_t *byte;   /* [n_pieces + 1]: where their codes begin */
    size_t *group;  /* [n_groups + 1]: pieces */
    size_t longest; /* group, in elements */
} bm_code_plan;

/*
 * Plans n floats, of which those from n_learned on are statistics. Columns end
 * at edge[0] < edge[1] < ... < edge[edges - 1] < n, and at n. Fails with
 * BM_ERR_MEMORY. Free with bm_code_plan_free.
 */
BM_CHECKED bm_status bm_code_plan_make(bm_code_plan *out, bm_code code,
                                       size_t n, size_t n_learned,
                                       const size_t *edge, size_t edges);
void bm_code_plan_free(bm_code_plan *p);

/* The slices of `size` ranks, as bm_slices_cut: rank r owns the groups
 * [first[r], first[r + 1]); first has size + 1 elements. */
BM_CHECKED bm_status bm_code_plan_cut(const bm_code_plan *p, int size,
                                      const char *coordinator, size_t *first);

/* True if the piece is decoded to the floats that were encoded. */
bool bm_code_plan_exact(const bm_code_plan *p, size_t piece);

/* Encodes or decodes one piece; x: its floats, code: its bytes. */
void bm_code_plan_encode(const bm_code_plan *p, size_t piece, const float *x,
                         unsigned char *code);
void bm_code_plan_decode(const bm_code_plan *p, size_t piece,
                         const unsigned char *code, float *x);

#endif
