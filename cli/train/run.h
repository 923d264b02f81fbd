/*
 * run.h - the directory of a run: its lock, configuration, journal, checkpoints
 * and model.
 */
#ifndef BM_CLI_TRAIN_RUN_H
#define BM_CLI_TRAIN_RUN_H

#include "cli/settings.h"
#include "comm/comm.h"
#include "core/fence.h"
#include "core/log.h"
#include "io/model/checkpoint.h"

typedef struct bm_run {
    char directory[2048], config_path[2100], journal_path[2100];
    char checkpoints[2100], model_path[2100], ema_path[2100];
    char best_path[2100];
    bool fresh;              /* a new run, nothing to resume */
    int attempt;             /* 1, 2, ..: how often the run was started */
    char own[BM_FENCE_ROOM]; /* the text of the attempt, of fence.h */
    int lock;                /* rank 0, without a supervisor: file descriptor */
    bm_journal *journal;     /* rank 0 */
} bm_run;

/*
 * *Collective*; rank 0 does the work. Creates the directory, or opens an
 * existing run to resume it. job.device and job.precision must be resolved, not
 * `auto`. Fails with BM_ERR_CREATE if the directory cannot be created, is in
 * use by another job or holds files but no run; with BM_ERR_CONFIG if the run
 * was started with other settings, which the message lists (train.epochs,
 * train.keep, train.checkpoint_every, data.test, job.threads, job.bind,
 * job.exchange, job.trace, job.metrics, job.tensorboard and the limits of [job]
 * may differ); with BM_ERR_IO if a file cannot
 * be written. After a failure bm_run_close is still due.
 */
BM_CHECKED bm_status bm_run_open(bm_run *run, const char *directory,
                                 bm_comm *comm, const bm_config *config);
void bm_run_close(bm_run *run);

/* For a supervisor: creates the directory and locks it, until close(*lock);
 * begins the next attempt, whose ranks find its text in BM_FENCE_ATTEMPT. Fail
 * as bm_run_open and bm_fence_begin. */
BM_CHECKED bm_status bm_run_claim(const char *directory, int *lock);
BM_CHECKED bm_status bm_run_attempt(const char *directory,
                                    char own[BM_FENCE_ROOM]);

/* *Collective*; comm NULL: this process alone. path [room], equal on all ranks, <- the
 * newest checkpoint of the run whose header can be read; "": there is none. */
BM_CHECKED bm_status bm_run_newest(const char *directory, bm_comm *comm,
                                   char *path, size_t room);

/* Fails as bm_run_open would, except for a directory in use; writes nothing. */
BM_CHECKED bm_status bm_run_check(const char *directory,
                                  const bm_config *config);

#endif
