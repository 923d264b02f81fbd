/*
 * sum_mpi.c - the MPI library's allreduce of one vector per rank: the mean of
 * the workers hosted there, times their fraction of the total weight. The order
 * of roundings depends on P and on the library.
 */
#include "comm/sum/sum_ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct local {
    double weight; /* of the workers added here */
    float *mean;   /* [n] */
} local;

static bm_status open(bm_sum *s)
{
    local *l = s->self = calloc(1, sizeof *l);

    if (l != NULL)
        l->mean = malloc((s->n + 1) * sizeof *l->mean);
    if (l == NULL || l->mean == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a sum of %zu", s->n);
    return BM_OK;
}

static void close(bm_sum *s)
{
    local *l = s->self;

    if (l == NULL)
        return;
    free(l->mean);
    free(l);
}

static void add(bm_sum *s, int worker, const float *x, double weight)
{
    local *l = s->self;

    (void)worker;
    bm_sum_blend(s, l->mean, l->weight, x, weight, s->n);
    l->weight += weight;
}

static bm_status scatter(bm_sum *s)
{
    local *l = s->self;
    double fraction = l->weight > 0 ? l->weight / s->total : 0;

    for (size_t i = 0; i < s->n; i++)
        l->mean[i] = fraction > 0 ? (float)(fraction * l->mean[i]) : 0;
    l->weight = 0;
    return bm_comm_sum_floats(s->comm, l->mean, s->n);
}

static void mean(bm_sum *s, size_t at, size_t n, float *out)
{
    local *l = s->self;
    memcpy(out, l->mean + s->start[s->rank] + at, n * sizeof *out);
}

/* The library's allreduce is counted as a ring, see bm_traffic. */
static bm_status sent(const bm_sum_shape *s, double *bytes)
{
    double others = s->size - 1;

    for (int r = 0; r < s->size; r++) {
        double own = (double)(s->start[r + 1] - s->start[r]);
        bytes[r] =
            floor(8 * others * (double)s->n / s->size) + 4 * others * own;
    }
    return BM_OK;
}

static double vectors(double hosted)
{
    (void)hosted;
    return 2;
}

const bm_sum_ops bm_sum_mpi = {
    .name = "mpi",
    .traits = {.by_host = true, .vectors = vectors},
    .open = open,
    .close = close,
    .add = add,
    .scatter = scatter,
    .mean = mean,
    .sent = sent,
};
