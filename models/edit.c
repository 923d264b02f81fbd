/* edit.c - Levenshtein's recursion, row by row. Every cell holds the edits of
 * the alignment that the rule for ties selects. */
#include "models/edit.h"

#include <stdlib.h>

static bm_edits cheapest(bm_edits diagonal, bm_edits deletion,
                         bm_edits insertion)
{
    bm_edits best = diagonal;

    if (bm_edits_total(deletion) < bm_edits_total(best))
        best = deletion;
    if (bm_edits_total(insertion) < bm_edits_total(best))
        best = insertion;
    return best;
}

bm_status bm_edit(const int32_t *ref, size_t n_ref, const int32_t *hyp,
                  size_t n_hyp, bm_edits *out)
{
    bm_edits *row = calloc(n_ref + 1, sizeof *row);

    if (row == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to align %zu symbols", n_ref);
    for (size_t i = 0; i <= n_ref; i++)
        row[i].deletions = i;
    for (size_t j = 0; j < n_hyp; j++) {
        bm_edits diagonal = row[0];

        row[0].insertions++;
        for (size_t i = 1; i <= n_ref; i++) {
            bm_edits deletion = row[i - 1], insertion = row[i];

            diagonal.substitutions += ref[i - 1] != hyp[j];
            deletion.deletions++;
            insertion.insertions++;
            insertion = cheapest(diagonal, deletion, insertion);
            diagonal = row[i];
            row[i] = insertion;
        }
    }
    *out = row[n_ref];
    free(row);
    return BM_OK;
}
