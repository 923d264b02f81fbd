/*
 * edit.h - Levenshtein distance of sequences of symbols, for label and word
 * error rates, with costs of 1 or those of NIST's sclite.
 */
#ifndef BM_MODELS_EDIT_H
#define BM_MODELS_EDIT_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

/* The edits that turn the reference into the hypothesis. */
typedef struct bm_edits {
    size_t substitutions;
    size_t deletions;  /* symbols missing in the hypothesis */
    size_t insertions; /* symbols that only the hypothesis has */
} bm_edits;

static inline size_t bm_edits_total(bm_edits e)
{
    return e.substitutions + e.deletions + e.insertions;
}

/* What an edit costs when an alignment is chosen. A match costs 0. */
typedef struct bm_edit_costs {
    size_t substitution, deletion, insertion;
} bm_edit_costs;

extern const bm_edit_costs bm_edit_unit;   /* 1, 1, 1 */
extern const bm_edit_costs bm_edit_sclite; /* 4, 3, 3 */

/*
 * *out <- the edits of a cheapest alignment of ref [n_ref] and hyp [n_hyp], with
 * costs of 1. The total is unique; ties prefer a match or substitution, then a
 * deletion. Fails only with BM_ERR_MEMORY; needs n_ref + 1 cells, and time that
 * grows with the length times the edits.
 */
BM_CHECKED bm_status bm_edit(const int32_t *ref, size_t n_ref,
                             const int32_t *hyp, size_t n_hyp, bm_edits *out);

/* The same with other costs. Their sum is unique, the number of edits is not. */
BM_CHECKED bm_status bm_edit_priced(const int32_t *ref, size_t n_ref,
                                    const int32_t *hyp, size_t n_hyp,
                                    const bm_edit_costs *costs, bm_edits *out);

/* A pair of an alignment: a symbol of each, which are equal or substituted; -1:
 * none, in a deletion (hyp) or an insertion (ref). */
typedef struct bm_pair {
    int32_t ref, hyp;
} bm_pair;

/*
 * The alignment that bm_edit_priced counts: out [n_ref + n_hyp] <- its pairs in
 * order, *n <- how many. Symbols are 0 or more. Fails only with BM_ERR_MEMORY; needs
 * (n_ref + 1) (n_hyp + 1) bytes, of long texts with few edits much less.
 */
BM_CHECKED bm_status bm_align(const int32_t *ref, size_t n_ref,
                              const int32_t *hyp, size_t n_hyp,
                              const bm_edit_costs *costs, bm_pair *out,
                              size_t *n);

/* A reference with alternatives, "i { uh / um / @ } see": every path from node 0
 * to the last node is one of its texts. An arc leads to a later node. */
typedef struct bm_text_arc {
    size_t from, to;
    int32_t symbol; /* -1: none */
} bm_text_arc;

enum { BM_MOST_ARCS_INTO = 64 }; /* a node */

typedef struct bm_text_graph {
    bm_text_arc *arcs; /* [n_arcs], sorted by `to` */
    size_t n_arcs, n_nodes;
} bm_text_graph;

/*
 * The cheapest alignment of hyp [n_hyp] with any text of the reference:
 * out [n_arcs + n_hyp] <- its pairs in order, *n <- how many; ties as in
 * bm_edit. Fails only with BM_ERR_MEMORY; needs n_nodes (n_hyp + 1) bytes, of
 * a reference without alternatives as bm_align.
 */
BM_CHECKED bm_status bm_align_graph(const bm_text_graph *ref,
                                    const int32_t *hyp, size_t n_hyp,
                                    const bm_edit_costs *costs, bm_pair *out,
                                    size_t *n);

#endif
