/*
 * buckets.h - how a gradient is cut into pieces that are exchanged by
 * themselves, each as soon as the backward pass is done with it: one for each
 * layer at first, then some of them together.
 *
 *     n = bm_buckets_of_layers(params, b);
 *     n = bm_buckets_fill(n, b, cap);                  of a size
 *     n = bm_buckets_merge(n, b, seconds, alpha, beta);    of the right size
 *
 * Buckets stand in the order in which they are exchanged. They begin at whole
 * chunks of the ordered sum, so that its bits do not depend on the cut: a layer
 * that ends within a chunk leaves its last numbers to the next bucket.
 */
#ifndef BM_BMUF_EXCHANGE_BUCKETS_H
#define BM_BMUF_EXCHANGE_BUCKETS_H

#include "compute/params.h"

typedef struct bm_bucket {
    size_t offset, n; /* elements [offset, offset + n) of g */
    size_t part;      /* of params->parts: final with this one */
} bm_bucket;

enum { BM_BUCKETS = 1024 }; /* at most, one more where there are statistics */

/* One for each part, and one for what is beside statistics, at the end.
 * out: [BM_BUCKETS + 1]; returns how many. */
size_t bm_buckets_of_layers(const bm_params *p, bm_bucket *out);

/*
 * Joins neighbours until they hold `bytes` or more; the first one, which all
 * wait for, 1 / 25 of that: PyTorch's DistributedDataParallel, of 25 MiB.
 */
size_t bm_buckets_fill(size_t n, bm_bucket *b, double bytes);

/*
 * Joins neighbours that had better travel together (bm_cost_merge), where an
 * exchange takes a + b bytes seconds, and the backward pass seconds[i] from the
 * end of part i - 1 to that of part i.
 */
size_t bm_buckets_merge(size_t n, bm_bucket *buckets, const double *seconds,
                        double a, double b);

/* The line t = a + b x of least squares through n points, n >= 2, neither less
 * than zero. */
void bm_buckets_line(size_t n, const double *x, const double *t, double *a,
                     double *b);

#endif
