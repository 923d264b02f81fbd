/* chart.h - lines over numbers of workers, as SVG. */
#ifndef BM_CLI_REPORT_CHART_H
#define BM_CLI_REPORT_CHART_H

#include "core/status.h"

#include <stddef.h>

typedef struct bm_chart_line {
    const char *name;
    const double *y; /* [n]; borrowed */
} bm_chart_line;

/* Writes `path`: speed-up over workers and, below, efficiency (speed-up over
 * workers), both axes of the first in powers of two. x [n] ascends from 1. */
BM_CHECKED bm_status bm_chart_write(const char *path, const char *title,
                                    size_t n, const int *x, size_t lines,
                                    const bm_chart_line *line);

#endif
