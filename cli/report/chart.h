/* chart.h - draws speed-up and efficiency over workers, as SVG. */
#ifndef BM_CLI_REPORT_CHART_H
#define BM_CLI_REPORT_CHART_H

#include "core/status.h"

#include <stddef.h>

typedef struct bm_chart_line {
    const char *name;
    const double *y; /* [n]; borrowed */
} bm_chart_line;

/* Writes `path`: y over x with logarithmic axes and, below, efficiency y / x.
 * x [n] increases from 1 or more. Fails as bm_file_write. */
BM_CHECKED bm_status bm_chart_write(const char *path, const char *title,
                                    size_t n, const int *x, size_t lines,
                                    const bm_chart_line *line);

#endif
