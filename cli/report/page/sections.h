/* sections.h - the sections of a report that are made from journals: learning
 * curves, the filter, time, workers. */
#ifndef BM_CLI_REPORT_PAGE_SECTIONS_H
#define BM_CLI_REPORT_PAGE_SECTIONS_H

#include "cli/report/runs/groups.h"

#include <stdio.h>

/* Each writes one section. Fail with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_report_learning(FILE *f, const bm_run_set *r);
BM_CHECKED bm_status bm_report_filter(FILE *f, const bm_run_set *r);
BM_CHECKED bm_status bm_report_time(FILE *f, const bm_run_set *r);
BM_CHECKED bm_status bm_report_workers(FILE *f, const bm_run_set *r);

#endif
