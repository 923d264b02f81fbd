/* describe.h - what bmuf info prints of a run, and of a directory of runs. */
#ifndef BM_CLI_REPORT_RUNS_DESCRIBE_H
#define BM_CLI_REPORT_RUNS_DESCRIBE_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Is there a journal in the directory? In a directory within it? */
bool bm_is_run(const char *directory);
bool bm_has_runs(const char *directory);

/* Calls `one` for each run in a directory, in the order of their names. Runs for which
 * it fails do not stop it: it warns of them, unless `quiet`, and fails in the end as the
 * first of them. Not for several threads at a time. */
BM_CHECKED bm_status bm_runs_each(const char *directory, bool quiet,
                                  bm_status (*one)(void *self, const char *path,
                                                   const char *name),
                                  void *self);

/* Prints to stdout, as text or JSON. Fail as bm_run_summary_read does. */
BM_CHECKED bm_status bm_describe_run(const char *directory, bool json);

/* A table of the runs in a directory, also of those that cannot be read. */
BM_CHECKED bm_status bm_describe_runs(const char *directory, bool json);

#endif
