/* cuts.h - checks of a cut of a gradient into buckets. */
#ifndef BM_TESTS_SUPPORT_REFERENCE_CUTS_H
#define BM_TESTS_SUPPORT_REFERENCE_CUTS_H

#include "bmuf/exchange/buckets.h"

/* Fails unless each element is in one bucket, buckets begin at chunks, and each
 * waits for the last of the layers that it has elements of. */
void check_cut(const bm_params *p, size_t n, const bm_bucket *b);

#endif
