/*
 * edit.h - Levenshtein distance of sequences of symbols, with costs of 1, for
 * label and word error rates.
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

/*
 * *out <- the edits of a cheapest alignment of ref [n_ref] and hyp [n_hyp]. The
 * total is unique; ties prefer a match or substitution, then a deletion. Fails
 * only with BM_ERR_MEMORY; needs n_ref + 1 cells.
 */
BM_CHECKED bm_status bm_edit(const int32_t *ref, size_t n_ref,
                             const int32_t *hyp, size_t n_hyp, bm_edits *out);

/* A pair of an alignment: a symbol of each, which are equal or substituted; -1:
 * none, in a deletion (hyp) or an insertion (ref). */
typedef struct bm_pair {
    int32_t ref, hyp;
} bm_pair;

/*
 * The alignment that bm_edit counts: out [n_ref + n_hyp] <- its pairs in order,
 * *n <- how many. Symbols are 0 or more. Fails only with BM_ERR_MEMORY; needs
 * (n_ref + 1) (n_hyp + 1) bytes.
 */
BM_CHECKED bm_status bm_align(const int32_t *ref, size_t n_ref,
                              const int32_t *hyp, size_t n_hyp, bm_pair *out,
                              size_t *n);

#endif
