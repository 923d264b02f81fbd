/* histogram.h - how numbers are distributed, for TensorBoard. */
#ifndef BM_CLI_TELEMETRY_HISTOGRAM_H
#define BM_CLI_TELEMETRY_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>

enum { BM_HISTOGRAM_BINS = 30 }; /* as many as TensorBoard shows */

typedef struct bm_histogram {
    double min, max, sum, sum_squares;
    double n;    /* finite numbers; only these count */
    size_t bins; /* of equal width between min and max; 1 if these are equal */
    double limit[BM_HISTOGRAM_BINS]; /* upper ends; the last is max */
    double count[BM_HISTOGRAM_BINS];
} bm_histogram;

/* Of x [n], or of x - minus unless that is NULL. False: no number is finite. */
bool bm_histogram_make(bm_histogram *h, const float *x, const float *minus,
                       size_t n);

#endif
