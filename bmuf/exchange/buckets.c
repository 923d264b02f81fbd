#include "bmuf/exchange/buckets.h"

#include "bmuf/exchange/cost.h"
#include "comm/slices.h"

#include <math.h>

/* The start of the first chunk at or after element i. */
static size_t round_up(size_t i)
{
    return (i + BM_SUM_CHUNK - 1) / BM_SUM_CHUNK * BM_SUM_CHUNK;
}

size_t bm_buckets_of_layers(const bm_params *p, bm_bucket *out)
{
    size_t last = p->n_ranges > 0 ? p->n_ranges - 1 : 0, n = 0;
    size_t end =
        p->n > p->n_learned ? p->n_learned / BM_SUM_CHUNK * BM_SUM_CHUNK : p->n;
    size_t statistics = end;

    for (size_t i = 0; i <= last; i++) {
        size_t from = i < last ? round_up(p->ranges[i].offset) : 0;

        if (from >= end || (n + 1 == BM_BUCKETS && i < last))
            continue; /* joined to the next one */
        out[n++] = (bm_bucket){from, end - from, i};
        end = from;
    }
    if (statistics < p->n)
        out[n++] = (bm_bucket){statistics, p->n - statistics, last};
    return n;
}

static bool touch(const bm_bucket *a, const bm_bucket *next)
{
    return next->offset + next->n == a->offset;
}

static double bytes_of(const bm_bucket *b)
{
    return (double)b->n * sizeof(float);
}

/* Joins bucket i to the one before where joins[i]. */
static size_t join(size_t n, bm_bucket *b, const bool *joins)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (i > 0 && joins[i]) {
            bm_bucket *to = &b[kept - 1];
            *to = (bm_bucket){b[i].offset, to->n + b[i].n, b[i].range};
        } else {
            b[kept++] = b[i];
        }
    return kept;
}

size_t bm_buckets_fill(size_t n, bm_bucket *b, double bytes)
{
    enum { FIRST = 25 }; /* 1 MiB of 25 */
    bool joins[BM_BUCKETS + 1] = {false};
    double held = 0, cap = bytes / FIRST;

    for (size_t i = 0; i < n; i++) {
        joins[i] = i > 0 && held < cap && touch(&b[i - 1], &b[i]);
        if (i > 0 && !joins[i]) {
            cap = bytes;
            held = 0;
        }
        held += bytes_of(&b[i]);
    }
    return join(n, b, joins);
}

size_t bm_buckets_merge(size_t n, bm_bucket *buckets, const double *seconds,
                        double a, double b)
{
    double backward[BM_BUCKETS] = {0}, bytes[BM_BUCKETS];
    bool joins[BM_BUCKETS + 1] = {false};
    int number[BM_BUCKETS];
    size_t layers = 0, range = 0;

    while (layers < n &&
           (layers == 0 || touch(&buckets[layers - 1], &buckets[layers])))
        layers++;
    for (size_t k = 0; k < layers; k++) {
        for (; range <= buckets[k].range; range++)
            backward[k] += seconds[range];
        bytes[k] = bytes_of(&buckets[k]);
    }
    if (layers > 0)
        (void)bm_cost_merge(layers, backward, bytes, a, b, number);
    for (size_t k = 1; k < layers; k++)
        joins[k] = number[k] == number[k - 1];
    return join(n, buckets, joins);
}

void bm_buckets_line(size_t n, const double *x, const double *t, double *a,
                     double *b)
{
    double mx = 0, mt = 0, xx = 0, xt = 0;

    for (size_t i = 0; i < n; i++) {
        mx += x[i] / (double)n;
        mt += t[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        xt += (x[i] - mx) * (t[i] - mt);
    }
    *b = fmax(xt / xx, 0);
    *a = fmax(mt - *b * mx, 0);
}
