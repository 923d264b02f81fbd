/* edit.c - Levenshtein's recursion, row by row. Every cell holds the edits of
 * the alignment that the rule for ties selects. */
#include "models/edit.h"

#include <stdlib.h>
#include <string.h>

typedef enum step { DIAGONAL, DELETION, INSERTION } step;

static step cheapest(bm_edits diagonal, bm_edits deletion, bm_edits insertion,
                     bm_edits *best)
{
    step by = DIAGONAL;

    *best = diagonal;
    if (bm_edits_total(deletion) < bm_edits_total(*best)) {
        *best = deletion;
        by = DELETION;
    }
    if (bm_edits_total(insertion) < bm_edits_total(*best)) {
        *best = insertion;
        by = INSERTION;
    }
    return by;
}

/* steps [n_hyp, n_ref]: the last step to each cell; may be NULL. */
static bm_status edit(const int32_t *ref, size_t n_ref, const int32_t *hyp,
                      size_t n_hyp, unsigned char *steps, bm_edits *out)
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
            bm_edits deletion = row[i - 1], insertion = row[i], best = {0};
            step by = DIAGONAL;

            diagonal.substitutions += ref[i - 1] != hyp[j];
            deletion.deletions++;
            insertion.insertions++;
            by = cheapest(diagonal, deletion, insertion, &best);
            if (steps != NULL)
                steps[j * n_ref + i - 1] = (unsigned char)by;
            diagonal = row[i];
            row[i] = best;
        }
    }
    *out = row[n_ref];
    free(row);
    return BM_OK;
}

bm_status bm_edit(const int32_t *ref, size_t n_ref, const int32_t *hyp,
                  size_t n_hyp, bm_edits *out)
{
    return edit(ref, n_ref, hyp, n_hyp, NULL, out);
}

bm_status bm_align(const int32_t *ref, size_t n_ref, const int32_t *hyp,
                   size_t n_hyp, bm_pair *out, size_t *n)
{
    unsigned char *steps = NULL;
    size_t i = n_ref, j = n_hyp, at = n_ref + n_hyp;
    bm_edits edits = {0};
    bm_status status = BM_OK;

    if (n_ref < SIZE_MAX / (n_hyp + 1))
        steps = malloc((n_ref + 1) * (n_hyp + 1));
    if (steps == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to align %zu with %zu symbols",
                       n_ref, n_hyp);
    BM_TRY_DONE(edit(ref, n_ref, hyp, n_hyp, steps, &edits));
    while (i > 0 || j > 0) { /* from the end, where the cell's step led to it */
        step by = i == 0   ? INSERTION
                  : j == 0 ? DELETION
                           : (step)steps[(j - 1) * n_ref + i - 1];

        out[--at] = (bm_pair){-1, -1};
        if (by != INSERTION)
            out[at].ref = ref[--i];
        if (by != DELETION)
            out[at].hyp = hyp[--j];
    }
    *n = n_ref + n_hyp - at;
    memmove(out, out + at, *n * sizeof *out);
done:
    free(steps);
    return status;
}
