/* describe.h - what bmuf info prints of a run, and of a directory of runs. */
#ifndef BM_CLI_REPORT_RUNS_DESCRIBE_H
#define BM_CLI_REPORT_RUNS_DESCRIBE_H

#include "core/status.h"

#include <stdbool.h>

/* Is there a journal in the directory? In a directory within it? */
bool bm_is_run(const char *directory);
bool bm_has_runs(const char *directory);

/* Prints to stdout, as text or JSON. Fail as bm_run_summary_read does. */
BM_CHECKED bm_status bm_describe_run(const char *directory, bool json);

/* A table of the runs in a directory. */
BM_CHECKED bm_status bm_describe_runs(const char *directory, bool json);

#endif
