/*
 * load.h - the load of one worker (see forecast.h), measured from a run's
 * journal, or derived from a configuration and its data.
 */
#ifndef BM_CLI_REPORT_SCALE_LOAD_H
#define BM_CLI_REPORT_SCALE_LOAD_H

#include "cli/arguments.h"
#include "cli/report/scale/forecast.h"
#include "cli/settings.h"

/* Where the load comes from, for the head of the table. */
typedef struct bm_load_source {
    int workers;
    int ranks[2];  /* fewest and most, of the blocks measured */
    double blocks; /* number of blocks measured; 0: a configuration */
    double frames; /* of a mini-batch */
    double step_s; /* of a worker's mini-batch */
    char strategy[32];
} bm_load_source;

/* From all blocks in DIRECTORY/journal.jsonl but the first of each attempt,
 * which includes warming up. Fails with BM_ERR_FORMAT if there are no two
 * blocks or their events have no number of mini-batches, and with
 * BM_ERR_MISSING or BM_ERR_IO if the journal cannot be read. */
BM_CHECKED bm_status bm_load_run(const char *directory, bm_load *out,
                                 bm_load_source *of);

/* From a configuration, its data, and the seconds of a step. Fails as
 * bm_settings_read, or if the data cannot be opened. */
BM_CHECKED bm_status bm_load_config(const bm_arguments *a, const char *path,
                                    double step_s, bm_load *out,
                                    bm_load_source *of);

/* From settings, their data, and the seconds of a step. Fails likewise. */
BM_CHECKED bm_status bm_load_settings(const bm_settings *s,
                                      const bm_dataset *data, double step_s,
                                      bm_load *out, bm_load_source *of);

/* The load if n workers share the cores; 0: each has its own. */
bm_load bm_load_on_cores(const bm_load *one, long cores, int n);

#endif
