/* bucketed_parts.h - how a bm_bucketed has cut the gradient, for its tests. Not
 * installed. */
#ifndef BM_BMUF_EXCHANGE_BUCKETED_PARTS_H
#define BM_BMUF_EXCHANGE_BUCKETED_PARTS_H

#include "bmuf/exchange/bucketed.h"

/* The current buckets, in the order in which they are exchanged. */
size_t bm_bucketed_count(const bm_bucketed *o);
bm_bucket bm_bucketed_bucket(const bm_bucketed *o, size_t i);

/* With overlap = merged: an exchange of x bytes takes a + b x seconds, as
 * measured. */
void bm_bucketed_line(const bm_bucketed *o, double *a, double *b);

#endif
