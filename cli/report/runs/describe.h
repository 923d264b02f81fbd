/* describe.h - what bmuf info prints of a run, and of a directory of runs. */
#ifndef BM_CLI_REPORT_RUNS_DESCRIBE_H
#define BM_CLI_REPORT_RUNS_DESCRIBE_H

#include "core/status.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

/* Is there a journal in the directory? In a directory within it? */
bool bm_is_run(const char *directory);
bool bm_has_runs(const char *directory);

/* The names of the runs in a directory, in order; returns how many, 0 if it
 * cannot be read. Not for several threads at a time. bm_runs_free frees them. */
size_t bm_runs_list(const char *directory, struct dirent ***names);
void bm_runs_free(struct dirent **names, size_t n);

/* path <- directory/name, without a slash too many. */
void bm_run_path(char path[4096], const char *directory, const char *name);

/* Prints to stdout, as text or JSON. Fail as bm_run_summary_read does. */
BM_CHECKED bm_status bm_describe_run(const char *directory, bool json);

/* A table of the runs in a directory. */
BM_CHECKED bm_status bm_describe_runs(const char *directory, bool json);

#endif
