/* phase.h - a part of bmuf tune that hands out jobs: the given configuration, the
 * search, the finalists. */
#ifndef BM_CLI_TUNE_PHASE_H
#define BM_CLI_TUNE_PHASE_H

#include "cli/tune/tuning.h"

typedef struct bm_tune_phase {
    const char *name;
    /* As bm_search_next. */
    bm_status (*next)(void *self, bm_tune_job *out, bm_search_state *state);
    void (*tell)(void *self, const bm_tune_result *r);
    void *self;
} bm_tune_phase;

/* From now on SIGTERM, SIGINT and SIGHUP end a phase. */
void bm_tune_catch_signals(void);

/* Trains all jobs, as many at once as there are places. Fails with BM_STOPPED
 * after a signal, with BM_ERR_COMM if all hosts are lost, and if the given
 * configuration or three trials in a row fail. */
BM_CHECKED bm_status bm_tune_phase_run(bm_tuning *t, const bm_tune_phase *p);

#endif
