/*
 * fragments_cut.c - where a model is cut into fragments: between layers, so
 * that a layer's bias is exchanged when its weights are.
 */
#include "bmuf/strategies/fragments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "3.lstm.wx" belongs to layer 3. */
static bool same_layer(const char *a, const char *b)
{
    size_t n = strcspn(a, ".");
    return strcspn(b, ".") == n && strncmp(a, b, n) == 0;
}

/* at[] <- where each layer but the first begins, or each chunk if params has no
 * segments; returns how many. at may be NULL. */
static size_t list_layers(const bm_params *p, size_t *at)
{
    const bm_segment *s = p->segments;
    size_t n = 0;

    for (size_t i = 1; i < p->n_segments; i++)
        if (s[i].offset < p->n_learned &&
            !same_layer(s[i].name, s[i - 1].name)) {
            if (at != NULL)
                at[n] = s[i].offset;
            n++;
        }
    for (size_t x = BM_SUM_CHUNK; p->n_segments == 0 && x < p->n_learned;
         x += BM_SUM_CHUNK) {
        if (at != NULL)
            at[n] = x;
        n++;
    }
    return n;
}

static double distance(size_t a, double b)
{
    return fabs((double)a - b);
}

bm_status bm_fragments_cut(const bm_params *params, long n, size_t *begin)
{
    size_t found = list_layers(params, NULL), next = 0;
    size_t *at = NULL;

    if (found + 1 < (size_t)n)
        return BM_FAIL(BM_ERR_CONFIG,
                       "block.fragments = %ld: the network can be cut into %zu "
                       "at most, one for each layer with weights; set fewer",
                       n, found + 1);
    at = calloc(found + 1, sizeof *at);
    if (at == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to cut at %zu layers", found);
    (void)list_layers(params, at);
    begin[0] = 0;
    for (long f = 1; f < n; f++, next++) {
        double even = (double)params->n * (double)f / (double)n;
        size_t last = found - (size_t)(n - f); /* leave cuts for the others */

        while (next < last &&
               distance(at[next + 1], even) < distance(at[next], even))
            next++;
        begin[f] = at[next];
    }
    begin[n] = params->n;
    free(at);
    return BM_OK;
}
