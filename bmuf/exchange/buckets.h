/*
 * buckets.h - how a gradient is cut into buckets, which are exchanged
 * separately: one for each layer at first, then joined.
 *
 *     n = bm_buckets_of_layers(params, b);
 *     n = bm_buckets_fill(n, b, cap);                      by size
 *     n = bm_buckets_merge(n, b, seconds, alpha, beta);    by measured times
 *
 * Buckets are in the order in which the backward pass completes them. They
 * start at whole chunks of the ordered sum, so that its bits do not depend on
 * the cut: if a layer ends within a chunk, its last elements belong to the next
 * bucket.
 */
#ifndef BM_BMUF_EXCHANGE_BUCKETS_H
#define BM_BMUF_EXCHANGE_BUCKETS_H

#include "compute/params.h"

typedef struct bm_bucket {
    size_t offset, n; /* elements [offset, offset + n) of g */
    size_t range;     /* of params->ranges: the bucket is complete with it */
} bm_bucket;

enum { BM_BUCKETS = 1024 }; /* at most; one more with statistics */

/* One bucket for each of params->ranges, and at the end one for statistics.
 * out: [BM_BUCKETS + 1]; returns the number of buckets. */
size_t bm_buckets_of_layers(const bm_params *p, bm_bucket *out);

/*
 * Joins neighbours until a bucket holds `bytes` or more; the first bucket, for
 * which all others wait, until it holds 1 / 25 of that (as PyTorch's
 * DistributedDataParallel: 1 MiB of 25). Returns the number of buckets.
 */
size_t bm_buckets_fill(size_t n, bm_bucket *b, double bytes);

/*
 * Joins neighbours whose joint exchange ends earlier (bm_cost_merge), if an
 * exchange of x bytes takes a + b x seconds, and the backward pass seconds[i]
 * from the end of range i - 1 to the end of range i. Returns the number of
 * buckets.
 */
size_t bm_buckets_merge(size_t n, bm_bucket *buckets, const double *seconds,
                        double a, double b);

/* Least-squares line t = a + b x through n >= 2 points, with a, b >= 0. */
void bm_buckets_line(size_t n, const double *x, const double *t, double *a,
                     double *b);

#endif
