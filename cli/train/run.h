/*
 * run.h - the directory a run leaves: its lock, its configuration, its journal,
 * its checkpoints and its model.
 */
#ifndef BM_CLI_TRAIN_RUN_H
#define BM_CLI_TRAIN_RUN_H

#include "cli/settings.h"
#include "comm/comm.h"
#include "core/log.h"
#include "io/model/checkpoint.h"

typedef struct bm_run {
    char directory[2048], config_path[2100], journal_path[2100];
    char checkpoints[2100], model_path[2100], ema_path[2100];
    bool fresh;          /* nothing was there before */
    int attempt;         /* 1, 2, ..: how often it was started */
    int lock;            /* rank 0: file descriptor */
    bm_journal *journal; /* rank 0 */
} bm_run;

/*
 * Collective; rank 0 does the work, all learn the outcome. Makes the directory
 * or goes on in it. BM_ERR_CREATE: another job is at work in it, or something
 * else than a run is there. BM_ERR_CONFIG: it was started with other settings,
 * which are listed; train.epochs, train.keep, train.checkpoint_every,
 * data.test, job.exchange and job.trace may change. By then no device or
 * precision is `auto`.
 */
BM_CHECKED bm_status bm_run_open(bm_run *run, const char *directory,
                                 bm_comm *comm, const bm_config *config);
void bm_run_close(bm_run *run);

/* Fails as bm_run_open would, but for other jobs; touches nothing. */
BM_CHECKED bm_status bm_run_check(const char *directory,
                                  const bm_config *config);

#endif
