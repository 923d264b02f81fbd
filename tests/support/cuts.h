/* cuts.h - what holds of any cut of a gradient into buckets. */
#ifndef BM_TESTS_SUPPORT_CUTS_H
#define BM_TESTS_SUPPORT_CUTS_H

#include "bmuf/exchange/buckets.h"

/* Each element is in one bucket, which waits for those parts that it holds
 * numbers of, and begins at a chunk. */
void check_cut(const bm_params *p, size_t n, const bm_bucket *b);

#endif
