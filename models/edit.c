/* edit.c - Levenshtein's recursion, row by row. In bm_edit every cell holds the
 * edits of the alignment that the rule for ties selects; in bm_align_graph it
 * holds the last step to it. */
#include "models/edit.h"

#include "core/size.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const bm_edit_costs bm_edit_unit = {1, 1, 1};
const bm_edit_costs bm_edit_sclite = {4, 3, 3};

/* ---- counts -------------------------------------------------------------- */

static size_t cost_of(bm_edits e, const bm_edit_costs *costs)
{
    return e.substitutions * costs->substitution +
           e.deletions * costs->deletion + e.insertions * costs->insertion;
}

static bm_edits cheaper(bm_edits best, bm_edits other,
                        const bm_edit_costs *costs)
{
    return cost_of(other, costs) < cost_of(best, costs) ? other : best;
}

bm_status bm_edit_priced(const int32_t *ref, size_t n_ref, const int32_t *hyp,
                         size_t n_hyp, const bm_edit_costs *costs,
                         bm_edits *out)
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
            diagonal = cheaper(diagonal, deletion, costs);
            diagonal = cheaper(diagonal, insertion, costs);
            insertion = row[i]; /* the diagonal of the next cell */
            row[i] = diagonal;
            diagonal = insertion;
        }
    }
    *out = row[n_ref];
    free(row);
    return BM_OK;
}

bm_status bm_edit(const int32_t *ref, size_t n_ref, const int32_t *hyp,
                  size_t n_hyp, bm_edits *out)
{
    return bm_edit_priced(ref, n_ref, hyp, n_hyp, &bm_edit_unit, out);
}

/* ---- alignments ---------------------------------------------------------- */

/* In the order in which ties prefer them. */
typedef enum kind { DIAGONAL, SILENT, DELETION, INSERTION } kind;

/* The last step to a cell, in a byte: a kind, and which of the arcs into the
 * node it took. */
typedef struct step {
    size_t cost;
    kind by;
    size_t arc;
} step;

typedef struct grid {
    const bm_text_graph *ref;
    const int32_t *hyp;
    const bm_edit_costs *costs;
    size_t *first;         /* [n_nodes + 1]: the first arc into each node */
    size_t *before, *here; /* [n_nodes]: costs of columns j - 1 and j */
    unsigned char *steps;  /* [n_hyp + 1, n_nodes] */
} grid;

static void offer(step *best, size_t cost, kind by, size_t arc)
{
    if (cost < best->cost || (cost == best->cost && by < best->by))
        *best = (step){cost, by, arc};
}

/* The best step to a node after j symbols of the hypothesis. */
static step find_step(const grid *g, size_t node, size_t j)
{
    step best = {SIZE_MAX, INSERTION, 0};

    if (node == 0 && j == 0)
        return (step){0, SILENT, 0};
    for (size_t k = g->first[node]; k < g->first[node + 1]; k++) {
        const bm_text_arc *a = &g->ref->arcs[k];
        size_t arc = k - g->first[node];

        if (a->symbol < 0) {
            offer(&best, g->here[a->from], SILENT, arc);
            continue;
        }
        offer(&best, g->here[a->from] + g->costs->deletion, DELETION, arc);
        if (j > 0)
            offer(&best,
                  g->before[a->from] +
                      (a->symbol == g->hyp[j - 1] ? 0 : g->costs->substitution),
                  DIAGONAL, arc);
    }
    if (j > 0)
        offer(&best, g->before[node] + g->costs->insertion, INSERTION, 0);
    return best;
}

static void fill(grid *g, size_t n_hyp)
{
    size_t n = g->ref->n_nodes;

    for (size_t j = 0; j <= n_hyp; j++) {
        size_t *swap = g->before;

        g->before = g->here;
        g->here = swap;
        for (size_t node = 0; node < n; node++) {
            step s = find_step(g, node, j);

            g->here[node] = s.cost;
            g->steps[j * n + node] = (unsigned char)(s.arc * 4 + (size_t)s.by);
        }
    }
}

/* Fills out from its end; returns where it begins. */
static size_t follow(const grid *g, size_t n_hyp, bm_pair *out, size_t at)
{
    size_t n = g->ref->n_nodes, node = n - 1, j = n_hyp;

    while (node > 0 || j > 0) {
        unsigned char packed = g->steps[j * n + node];
        kind by = (kind)(packed % 4);
        const bm_text_arc *a = &g->ref->arcs[g->first[node] + packed / 4];
        bm_pair pair = {-1, -1};

        if (by == DIAGONAL || by == INSERTION)
            pair.hyp = g->hyp[--j];
        if (by == DIAGONAL || by == DELETION)
            pair.ref = a->symbol;
        if (by != SILENT)
            out[--at] = pair;
        if (by != INSERTION)
            node = a->from;
    }
    return at;
}

/* first[node] <- the first arc into it. */
static void index_arcs(const bm_text_graph *ref, size_t *first)
{
    size_t k = 0;

    for (size_t node = 0; node <= ref->n_nodes; node++) {
        first[node] = k;
        while (k < ref->n_arcs && ref->arcs[k].to == node)
            k++;
        BM_ASSERT(k - first[node] <= BM_MOST_ARCS_INTO);
    }
    BM_ASSERT(k == ref->n_arcs);
}

bm_status bm_align_graph(const bm_text_graph *ref, const int32_t *hyp,
                         size_t n_hyp, const bm_edit_costs *costs, bm_pair *out,
                         size_t *n)
{
    size_t all = ref->n_arcs + n_hyp, at = 0, nodes = ref->n_nodes;
    grid g = {.ref = ref, .hyp = hyp, .costs = costs};
    bm_status status = BM_OK;

    g.first = calloc(nodes + 1, sizeof *g.first);
    g.before = calloc(nodes, sizeof *g.before);
    g.here = calloc(nodes, sizeof *g.here);
    g.steps = malloc(bm_size_mul(nodes, n_hyp + 1));
    if (g.first == NULL || g.before == NULL || g.here == NULL ||
        g.steps == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory to align %zu with %zu symbols",
                     ref->n_arcs, n_hyp);
    index_arcs(ref, g.first);
    fill(&g, n_hyp);
    at = follow(&g, n_hyp, out, all);
    *n = all - at;
    memmove(out, out + at, *n * sizeof *out);
done:
    free(g.first);
    free(g.before);
    free(g.here);
    free(g.steps);
    return status;
}

bm_status bm_align(const int32_t *ref, size_t n_ref, const int32_t *hyp,
                   size_t n_hyp, bm_pair *out, size_t *n)
{
    bm_text_graph line = {malloc((n_ref + 1) * sizeof *line.arcs), n_ref,
                          n_ref + 1};
    bm_status status = BM_OK;

    if (line.arcs == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to align %zu symbols", n_ref);
    for (size_t i = 0; i < n_ref; i++)
        line.arcs[i] = (bm_text_arc){i, i + 1, ref[i]};
    status = bm_align_graph(&line, hyp, n_hyp, &bm_edit_unit, out, n);
    free(line.arcs);
    return status;
}
