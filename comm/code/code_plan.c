#include "comm/code/code_plan.h"

#include "comm/slices.h"

#include <stdlib.h>
#include <string.h>

static const bm_code fp32 = {.ops = &bm_code_fp32_baseline};

/* The code of a piece with the elements [from, to). */
static const bm_code *code_of(const bm_code_plan *p, size_t from, size_t to)
{
    const bm_code *c = &p->code;
    size_t n = to - from;

    return from < p->n_learned && c->ops->bytes(c, n) < n * sizeof(float)
               ? c
               : &fp32;
}

static const bm_code *of_piece(const bm_code_plan *p, size_t piece)
{
    return code_of(p, p->start[piece], p->start[piece + 1]);
}

bool bm_code_plan_exact(const bm_code_plan *p, size_t piece)
{
    return of_piece(p, piece)->ops->exact;
}

/* The end of the piece that starts at `at`; *edge: the first edge after it. */
static size_t end(const bm_code_plan *p, size_t at, const size_t *edge,
                  size_t edges)
{
    size_t chunk = (at / BM_SUM_CHUNK + 1) * BM_SUM_CHUNK, to = p->n;

    if (p->code.ops->columns && edges > 0)
        to = *edge;
    if (!p->code.ops->columns && chunk < to)
        to = chunk;
    return at < p->n_learned && p->n_learned < to ? p->n_learned : to;
}

static void cut(bm_code_plan *p, const size_t *edge, size_t edges)
{
    size_t chunk = 0;

    for (size_t at = 0; at < p->n; p->n_pieces++) {
        const bm_code *c = NULL;
        size_t to = 0, from = at, i = p->n_pieces;

        for (; edges > 0 && *edge <= at; edges--)
            edge++;
        to = end(p, at, edge, edges);
        for (; chunk * BM_SUM_CHUNK <= at; chunk++)
            p->group[chunk] = i;
        c = code_of(p, from, to);
        p->start[i + 1] = at = to;
        p->byte[i + 1] = p->byte[i] + c->ops->bytes(c, to - from);
    }
    for (; chunk <= p->n_groups; chunk++)
        p->group[chunk] = p->n_pieces;
    for (size_t c = 0; c < p->n_groups; c++) {
        size_t count = p->start[p->group[c + 1]] - p->start[p->group[c]];
        p->longest = count > p->longest ? count : p->longest;
    }
}

bm_status bm_code_plan_make(bm_code_plan *out, bm_code code, size_t n,
                            size_t n_learned, const size_t *edge, size_t edges)
{
    size_t chunks = (n + BM_SUM_CHUNK - 1) / BM_SUM_CHUNK;
    size_t most = (code.ops->columns ? edges + 1 : chunks) + 2;
    bm_code_plan p = {
        .code = code, .n = n, .n_learned = n_learned, .n_groups = chunks};

    p.start = calloc(most, sizeof *p.start);
    p.byte = calloc(most, sizeof *p.byte);
    p.group = calloc(chunks + 1, sizeof *p.group);
    if (p.start == NULL || p.byte == NULL || p.group == NULL) {
        bm_code_plan_free(&p);
        return BM_FAIL(BM_ERR_MEMORY, "no memory to cut %zu floats", n);
    }
    cut(&p, edge, edges);
    *out = p;
    return BM_OK;
}

void bm_code_plan_free(bm_code_plan *p)
{
    free(p->start);
    free(p->byte);
    free(p->group);
    *p = (bm_code_plan){0};
}

bm_status bm_code_plan_cut(const bm_code_plan *p, int size,
                           const char *coordinator, size_t *first)
{
    BM_TRY(bm_slices_cut(p->n, size, coordinator, first));
    for (int r = 0; r <= size; r++)
        first[r] = (first[r] + BM_SUM_CHUNK - 1) / BM_SUM_CHUNK;
    return BM_OK;
}

void bm_code_plan_encode(const bm_code_plan *p, size_t piece, const float *x,
                         unsigned char *code)
{
    const bm_code *c = of_piece(p, piece);

    c->ops->encode(c, p->start[piece + 1] - p->start[piece], x, code);
}

void bm_code_plan_decode(const bm_code_plan *p, size_t piece,
                         const unsigned char *code, float *x)
{
    const bm_code *c = of_piece(p, piece);

    c->ops->decode(c, p->start[piece + 1] - p->start[piece], code, x);
}
