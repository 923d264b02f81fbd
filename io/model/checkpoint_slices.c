#include "io/model/checkpoint_slices.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A row as integers, so that tables can be summed over ranks: name, offset
 * .. */
enum {
    NAME = sizeof(((bm_state_slice *)0)->name) / 8,
    OFFSET = NAME,
    COUNT,
    WHOLE,
    WIDTH
};

static void write_rows(int64_t *row, const bm_state *states, size_t n_states,
                       size_t n)
{
    for (size_t i = 0; i < n_states; i++, row += WIDTH) {
        memcpy(row, states[i].name, sizeof states[i].name);
        row[OFFSET] = (int64_t)states[i].offset;
        row[COUNT] = (int64_t)states[i].count;
        row[WHOLE] = (int64_t)(states[i].whole > 0 ? states[i].whole : n);
    }
}

static void read_row(bm_state_slice *slice, const int64_t *row, int rank,
                     size_t index)
{
    memcpy(slice->name, row, sizeof slice->name);
    slice->rank = rank;
    slice->index = index;
    slice->offset = (size_t)row[OFFSET];
    slice->count = (size_t)row[COUNT];
    slice->whole = (size_t)row[WHOLE];
}

static int by_name(const void *left, const void *right)
{
    const bm_state_slice *a = left, *b = right;
    bool model = strcmp(a->name, "model") == 0;
    int order = strcmp(a->name, b->name);

    if (order != 0 && (model || strcmp(b->name, "model") == 0))
        return model ? -1 : 1;
    if (order == 0)
        order = a->rank - b->rank;
    if (order == 0)
        order = a->index < b->index ? -1 : a->index > b->index;
    return order;
}

/* Collective. The number of states of each rank. */
static bm_status count_rows(bm_comm *comm, size_t n_states, int64_t *counts,
                            size_t *n)
{
    int size = bm_comm_size(comm);

    counts[bm_comm_rank(comm)] = (int64_t)n_states;
    BM_TRY(bm_comm_sum_ints(comm, counts, (size_t)size));
    *n = 0;
    for (int r = 0; r < size; r++)
        *n += (size_t)counts[r];
    return BM_OK;
}

/* Collective. Each rank writes its rows into a table of zeros; the sum over
 * ranks has all rows. */
static bm_status gather_rows(bm_comm *comm, const bm_state *states,
                             const int64_t *counts, size_t n,
                             bm_state_slices *p)
{
    int64_t *table = calloc(p->n * WIDTH + 1, sizeof *table), *row = table;
    bm_state_slice *slice = NULL;
    size_t first = 0;
    bm_status status = BM_OK;

    p->rows = calloc(p->n + 1, sizeof *p->rows);
    if (table == NULL || p->rows == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for %zu slices", p->n);
    BM_TRY_DONE(bm_comm_agree(comm, status));
    BM_ASSERT(table != NULL && p->rows != NULL);
    for (int r = 0; r < bm_comm_rank(comm); r++)
        first += (size_t)counts[r];
    write_rows(table + first * WIDTH, states,
               (size_t)counts[bm_comm_rank(comm)], n);
    BM_TRY_DONE(bm_comm_sum_ints(comm, table, p->n * WIDTH));
    slice = p->rows;
    for (int r = 0; r < bm_comm_size(comm); r++)
        for (size_t i = 0; i < (size_t)counts[r]; i++, row += WIDTH)
            read_row(slice++, row, r, i);
    qsort(p->rows, p->n, sizeof *p->rows, by_name);
done:
    free(table);
    return status;
}

/* The slices of a state must agree on its length and cover it. */
static bm_status check_whole(const bm_state_slices *p, size_t first)
{
    const char *name = p->rows[first].name;
    size_t n = p->rows[first].whole;

    for (size_t i = first; i < bm_state_slices_end(p, first); i++) {
        if (p->rows[i].whole != n)
            return BM_FAIL(BM_ERR_ARG,
                           "%s has %zu elements on rank %d, but %zu on rank %d",
                           name, n, p->rows[first].rank, p->rows[i].whole,
                           p->rows[i].rank);
        if (p->rows[i].offset > n || p->rows[i].count > n - p->rows[i].offset)
            return BM_FAIL(BM_ERR_ARG,
                           "%s: rank %d has elements %zu to %zu of %zu", name,
                           p->rows[i].rank, p->rows[i].offset,
                           p->rows[i].offset + p->rows[i].count, n);
    }
    for (size_t at = 0; at < n;) {
        const bm_state_slice *slice = bm_state_slices_at(p, first, at);
        if (slice == NULL)
            return BM_FAIL(BM_ERR_ARG, "%s: no rank has element %zu", name, at);
        at = slice->offset + slice->count;
    }
    return BM_OK;
}

bm_status bm_state_slices_gather(bm_state_slices *out, bm_comm *comm,
                                 const bm_state *states, size_t n_states,
                                 size_t n)
{
    int64_t *counts = calloc((size_t)bm_comm_size(comm), sizeof *counts);
    bm_state_slices p = {0};
    bm_status status = BM_OK;

    for (size_t i = 0; i < n_states; i++)
        BM_ASSERT(memchr(states[i].name, '\0', sizeof states[i].name) != NULL);
    if (counts == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory to count states");
    BM_TRY_DONE(bm_comm_agree(comm, status));
    BM_ASSERT(counts != NULL);
    BM_TRY_DONE(count_rows(comm, n_states, counts, &p.n));
    BM_TRY_DONE(gather_rows(comm, states, counts, n, &p));
    for (size_t i = 0; i < p.n; i = bm_state_slices_end(&p, i))
        BM_TRY_DONE(check_whole(&p, i));
    *out = p;
    p.rows = NULL;
done:
    free(p.rows);
    free(counts);
    return status;
}

void bm_state_slices_free(bm_state_slices *p)
{
    free(p->rows);
    *p = (bm_state_slices){0};
}

size_t bm_state_slices_end(const bm_state_slices *p, size_t first)
{
    size_t i = first;

    while (i < p->n && strcmp(p->rows[i].name, p->rows[first].name) == 0)
        i++;
    return i;
}

const bm_state_slice *bm_state_slices_at(const bm_state_slices *p, size_t first,
                                         size_t at)
{
    size_t end = bm_state_slices_end(p, first);

    for (size_t i = first; i < end; i++)
        if (p->rows[i].offset <= at &&
            at - p->rows[i].offset < p->rows[i].count)
            return &p->rows[i];
    return NULL;
}
