/*
 * edit.h - how far one sequence of symbols is from another: Levenshtein's
 * distance with unit costs, for label and word error rates.
 */
#ifndef BM_MODELS_EDIT_H
#define BM_MODELS_EDIT_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

/* What turns the reference into the hypothesis. */
typedef struct bm_edits {
    size_t substitutions;
    size_t deletions;  /* symbols of the reference that are missing */
    size_t insertions; /* symbols of the hypothesis that are too many */
} bm_edits;

static inline size_t bm_edits_total(bm_edits e)
{
    return e.substitutions + e.deletions + e.insertions;
}

/*
 * One cheapest alignment. Ties prefer a match or substitution, then a deletion:
 * the total is unique, its parts are by that rule. Fails only for want of
 * memory, of which it needs one row of the reference's length.
 */
BM_CHECKED bm_status bm_edit(const int32_t *ref, size_t n_ref,
                             const int32_t *hyp, size_t n_hyp, bm_edits *out);

#endif
