/* journal_csv.h - bmuf info --csv: the journal of a run, or of several runs, as
 * one table for pandas, R or a spreadsheet (docs/jobs/journal.md). */
#ifndef BM_CLI_REPORT_JOURNAL_CSV_H
#define BM_CLI_REPORT_JOURNAL_CSV_H

#include "core/status.h"

#include <stdio.h>

/*
 * Writes a header and a row for each event of the run in `directory`, or of
 * each run in it: run, attempt, event, time, and all fields that any of these
 * events has, in the order in which they first appear. `kind`: only events of
 * this kind; NULL: all. Fails with BM_ERR_ARG if there is no such event, with
 * BM_ERR_MISSING or BM_ERR_IO if a journal cannot be read, after the rows of the others.
 */
BM_CHECKED bm_status bm_journal_csv(const char *directory, const char *kind,
                                    FILE *out);

#endif
