/* sort.h - numbers in ascending order. */
#ifndef BM_CORE_SORT_H
#define BM_CORE_SORT_H

#include <stddef.h>

/* x [n], without NaN; n = 0: no-op. */
void bm_sort(double *x, size_t n);

#endif
