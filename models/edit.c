/* edit.c - Levenshtein's recursion, row by row. In bm_edit every cell holds the
 * edits of the alignment that the rule for ties selects; in bm_align_graph it
 * holds the last step to it. Of texts that are much alike only cells near the
 * diagonal are computed (Ukkonen 1985), with the same result. */
#include "models/edit.h"

#include "core/size.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const bm_edit_costs bm_edit_unit = {1, 1, 1};
const bm_edit_costs bm_edit_sclite = {4, 3, 3};

/* ---- bands --------------------------------------------------------------- */

enum { FIRST_WIDTH = 32, WIDER = 4 }; /* times */

/* The diagonals that are computed: i - j, of i symbols of the reference and j of
 * the hypothesis. */
typedef struct band {
    ptrdiff_t low, high;
    bool whole;
} band;

/* Those that a path must be in, and `width` on both sides; all if most are. */
static band make_band(size_t n_ref, size_t n_hyp, size_t width)
{
    ptrdiff_t n = (ptrdiff_t)n_ref, m = (ptrdiff_t)n_hyp, w = (ptrdiff_t)width;
    band b = {(n < m ? n - m : 0) - w, (n > m ? n - m : 0) + w, false};

    if (b.high - b.low >= (n + m) / 2)
        return (band){-m, n, true};
    return b;
}

/* Is this the least cost if it is that of a path in the band? All paths that leave
 * the band cost more: they have the deletions and insertions that lead out of it
 * and back. */
static bool is_least(const band *b, size_t n_ref, size_t n_hyp,
                     const bm_edit_costs *costs, size_t cost)
{
    size_t above = (size_t)(b->high + 1), below = (size_t)(1 - b->low);

    return b->whole || (cost < above * costs->deletion +
                                   (above + n_hyp - n_ref) * costs->insertion &&
                        cost < below * costs->insertion +
                                   (below + n_ref - n_hyp) * costs->deletion);
}

/* After a band with a path of this cost: wider, but no wider than is enough for
 * that cost to be the least. */
static size_t widen(size_t width, size_t cost, const bm_edit_costs *costs)
{
    size_t enough = cost / (costs->deletion + costs->insertion);

    return enough < WIDER * width ? enough : WIDER * width;
}

/* The first and last i in the band for j, of 0 to n. */
static size_t first_of(const band *b, size_t j)
{
    ptrdiff_t i = (ptrdiff_t)j + b->low;

    return i > 0 ? (size_t)i : 0;
}

static size_t last_of(const band *b, size_t j, size_t n)
{
    ptrdiff_t i = (ptrdiff_t)j + b->high;

    return (size_t)i < n ? (size_t)i : n;
}

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

/* Outside of the band: too costly for any path. */
static const bm_edits outside = {0, SIZE_MAX / 16, 0};

static bm_edits edit_within(const band *b, const int32_t *ref, size_t n_ref,
                            const int32_t *hyp, size_t n_hyp,
                            const bm_edit_costs *costs, bm_edits *row)
{
    for (size_t i = 0; i <= n_ref; i++)
        row[i] =
            i <= last_of(b, 0, n_ref) ? (bm_edits){.deletions = i} : outside;
    for (size_t j = 0; j < n_hyp; j++) {
        size_t first = first_of(b, j + 1), last = last_of(b, j + 1, n_ref);
        size_t from = first > 0 ? first : 1;
        bm_edits diagonal = row[from - 1];

        row[from - 1] = first > 0 ? outside : (bm_edits){.insertions = j + 1};
        for (size_t i = from; i <= last; i++) {
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
    return row[n_ref];
}

bm_status bm_edit_priced(const int32_t *ref, size_t n_ref, const int32_t *hyp,
                         size_t n_hyp, const bm_edit_costs *costs,
                         bm_edits *out)
{
    bm_edits *row = calloc(n_ref + 1, sizeof *row);
    band b = {0};

    if (row == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to align %zu symbols", n_ref);
    for (size_t width = FIRST_WIDTH;;
         width = widen(width, cost_of(*out, costs), costs)) {
        b = make_band(n_ref, n_hyp, width);
        *out = edit_within(&b, ref, n_ref, hyp, n_hyp, costs, row);
        if (is_least(&b, n_ref, n_hyp, costs, cost_of(*out, costs)))
            break;
    }
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
    band band;             /* whole unless the reference is a line */
    size_t room;           /* nodes of a column, at most */
    unsigned char *steps;  /* [n_hyp + 1, room] */
} grid;

enum { DEAR = 4 }; /* SIZE_MAX / DEAR: too costly for any path */

/* The step to a node that is in the band. */
static unsigned char *step_at(const grid *g, size_t node, size_t j)
{
    return &g->steps[j * g->room + node - first_of(&g->band, j)];
}

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

    for (size_t node = 0; node < n; node++)
        g->before[node] = g->here[node] = SIZE_MAX / DEAR;
    for (size_t j = 0; j <= n_hyp; j++) {
        size_t *swap = g->before, first = first_of(&g->band, j);

        g->before = g->here;
        g->here = swap;
        if (first > 0)
            g->here[first - 1] = SIZE_MAX / DEAR;
        for (size_t node = first; node <= last_of(&g->band, j, n - 1); node++) {
            step s = find_step(g, node, j);

            g->here[node] = s.cost;
            *step_at(g, node, j) = (unsigned char)(s.arc * 4 + (size_t)s.by);
        }
    }
}

/* Fills out from its end; returns where it begins. */
static size_t follow(const grid *g, size_t n_hyp, bm_pair *out, size_t at)
{
    size_t node = g->ref->n_nodes - 1, j = n_hyp;

    while (node > 0 || j > 0) {
        unsigned char packed = *step_at(g, node, j);
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

/* Is there one text only? Then node i is behind i symbols. */
static bool is_line(const bm_text_graph *ref)
{
    bool line = ref->n_arcs + 1 == ref->n_nodes;

    for (size_t k = 0; line && k < ref->n_arcs; k++)
        line = ref->arcs[k].from == k && ref->arcs[k].symbol >= 0;
    return line;
}

/* Fills g->steps of a band that has the cheapest alignment. */
static bm_status fill_band(grid *g, size_t n_hyp)
{
    size_t n = g->ref->n_nodes - 1;
    bool line = is_line(g->ref);

    for (size_t width = FIRST_WIDTH;;
         width = widen(width, g->here[n], g->costs)) {
        band b = {-(ptrdiff_t)n_hyp, (ptrdiff_t)n, true};

        if (line)
            b = make_band(n, n_hyp, width);
        g->band = b;
        g->room = b.whole ? n + 1 : (size_t)(b.high - b.low + 1);
        free(g->steps);
        g->steps = malloc(bm_size_mul(g->room, n_hyp + 1));
        if (g->steps == NULL)
            return BM_FAIL(BM_ERR_MEMORY,
                           "no memory to align %zu with %zu symbols",
                           g->ref->n_arcs, n_hyp);
        fill(g, n_hyp);
        if (is_least(&b, n, n_hyp, g->costs, g->here[n]))
            return BM_OK;
    }
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
    if (g.first == NULL || g.before == NULL || g.here == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory to align %zu with %zu symbols",
                     ref->n_arcs, n_hyp);
    index_arcs(ref, g.first);
    BM_TRY_DONE(fill_band(&g, n_hyp));
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
                   size_t n_hyp, const bm_edit_costs *costs, bm_pair *out,
                   size_t *n)
{
    bm_text_graph line = {calloc(n_ref + 1, sizeof *line.arcs), n_ref,
                          n_ref + 1};
    bm_status status = BM_OK;

    if (line.arcs == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to align %zu symbols", n_ref);
    for (size_t i = 0; i < n_ref; i++)
        line.arcs[i] = (bm_text_arc){i, i + 1, ref[i]};
    status = bm_align_graph(&line, hyp, n_hyp, costs, out, n);
    free(line.arcs);
    return status;
}
