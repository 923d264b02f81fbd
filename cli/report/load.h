/*
 * load.h - what one worker does by itself, as a run's journal tells it or as a
 * configuration and its data have it.
 */
#ifndef BM_CLI_REPORT_LOAD_H
#define BM_CLI_REPORT_LOAD_H

#include "cli/arguments.h"
#include "cli/report/forecast.h"

/* What the load is of, for the table's head. */
typedef struct bm_load_source {
    int workers, ranks; /* of the run; of a configuration: its workers, 0 */
    double blocks;      /* that were looked at */
    double frames;      /* of a mini-batch */
    double step_s;      /* measured: of a worker's mini-batch, all in all */
    char strategy[32];
} bm_load_source;

/* From the blocks in DIR/journal.jsonl but the first, which is not warm yet. */
BM_CHECKED bm_status bm_load_run(const char *directory, bm_load *out,
                                 bm_load_source *of);

/* From a configuration, its data, and how long a step takes. */
BM_CHECKED bm_status bm_load_config(const bm_arguments *a, const char *path,
                                    double step_s, bm_load *out,
                                    bm_load_source *of);

#endif
