#include "bmuf/exchange/columns.h"

#include <stdlib.h>

/* The ends of the columns of a segment, unless edge is NULL; returns how many
 * columns there are. */
static size_t end_columns(const bm_segment *s, size_t *edge)
{
    size_t rows = s->dim[s->rank - 1], n = rows > 0 ? s->count / rows : 0;

    for (size_t i = 0; i < n && edge != NULL; i++)
        edge[i] = s->offset + (i + 1) * rows;
    return n;
}

bm_status bm_columns_plan(bm_code_plan *out, bm_code code,
                          const bm_params *params)
{
    size_t n = 0, *edge = NULL, *next = NULL;
    bm_status status = BM_OK;

    for (size_t i = 0; i < params->n_segments; i++)
        n += end_columns(&params->segments[i], NULL);
    next = edge = malloc((n + 1) * sizeof *edge);
    if (edge == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu columns", n);
    for (size_t i = 0; i < params->n_segments; i++)
        next += end_columns(&params->segments[i], next);
    status =
        bm_code_plan_make(out, code, params->n, params->n_learned, edge, n);
    free(edge);
    return status;
}
