/*
 * run.h - the directory of a run: its lock, configuration, journal, checkpoints
 * and model.
 */
#ifndef BM_CLI_TRAIN_RUN_H
#define BM_CLI_TRAIN_RUN_H

#include "cli/settings.h"
#include "comm/comm.h"
#include "core/file/fence.h"
#include "core/log.h"
#include "io/model/checkpoint.h"

typedef struct bm_run {
    char directory[2048], config_path[2100], journal_path[2100];
    char checkpoints[2100], model_path[2100], ema_path[2100];
    char best_path[2100];
    char copies[BM_CHECKPOINT_PATHS - 1][2100]; /* train.checkpoint_copies */
    int n_copies;
    int copy_locks[BM_CHECKPOINT_PATHS - 1]; /* rank 0: file descriptors */
    bool fresh;                              /* no block is done yet */
    int attempt;             /* 1, 2, ..: how often the run was started */
    char own[BM_FENCE_ROOM]; /* the text of the attempt, of fence.h */
    int lock;                /* rank 0, without a supervisor: file descriptor */
    bm_journal *journal;     /* rank 0 */
} bm_run;

/* A run that was not opened, of which bm_run_close closes nothing. */
#define BM_RUN_CLOSED                                                          \
    {                                                                          \
        .lock = -1, .copy_locks = { -1, -1, -1 }                               \
    }
_Static_assert(BM_CHECKPOINT_PATHS - 1 == 3, "-1 for each of the copy_locks");

/*
 * Collective; rank 0 does the work. Creates the directory, or opens an
 * existing run to resume it; bm_run_begin follows. job.device and job.precision
 * must be resolved, not `auto`. Fails with BM_ERR_CREATE if the directory
 * cannot be created, is in use by another job or holds files but no run; with
 * BM_ERR_CONFIG if the run was started with other settings, which the message
 * lists (those of docs/jobs/checkpoints.md may differ); with BM_ERR_IO if a file
 * cannot be written. A folder of train.checkpoint_copies that cannot be used is
 * a failure in a new run, and a warning in one that is resumed, which goes on
 * without it. After a failure bm_run_close is still due.
 */
BM_CHECKED bm_status bm_run_open(bm_run *run, const char *directory,
                                 bm_comm *comm, const bm_config *config);
void bm_run_close(bm_run *run);

/* Collective. Rank 0 writes config.ini, by which the directory becomes this
 * run's: call it when nothing else can be refused. Fails as bm_file_write. */
BM_CHECKED bm_status bm_run_begin(const bm_run *run, bm_comm *comm,
                                  const bm_config *config);

/* directory [room] <- the run that `config` is, or whose config.ini it is;
 * false: it belongs to no run. */
bool bm_run_of(const char *config, char *directory, size_t room);

/* For a supervisor: creates the directory and locks it, until close(*lock);
 * begins the next attempt, whose ranks find its text in BM_FENCE_ATTEMPT. Fail
 * as bm_run_open and bm_fence_begin. */
BM_CHECKED bm_status bm_run_claim(const char *directory, int *lock);
BM_CHECKED bm_status bm_run_attempt(const char *directory,
                                    char own[BM_FENCE_ROOM]);

/* A checkpoint of a run: in RUN/checkpoints (place 0), or in a folder of copies
 * (place 1, 2, ..). */
typedef struct bm_run_checkpoint {
    int64_t blocks;
    int place;
} bm_run_checkpoint;

/* Those of an open run, newest first, and of equal ones that in RUN first; *n:
 * how many, at most room. Fails as bm_checkpoint_list if those in RUN cannot be
 * listed; a folder of copies that cannot is skipped. */
BM_CHECKED bm_status bm_run_list(const bm_run *run, bm_run_checkpoint *out,
                                 size_t room, size_t *n);
/* out [room] <- its file. */
void bm_run_checkpoint_path(const bm_run *run, bm_run_checkpoint which,
                            char *out, size_t room);

/* Collective; comm NULL: this process alone. path [room], equal on all ranks,
 * <- the newest checkpoint of the run whose header can be read, of the copies
 * that `config` names too; "": there is none. */
BM_CHECKED bm_status bm_run_newest(const char *directory,
                                   const bm_config *config, bm_comm *comm,
                                   char *path, size_t room);

/* Fails if a setting differs from the run's config.ini; lists all of them. Warns of
 * changes that are allowed but have an effect. */
BM_CHECKED bm_status bm_run_compare(const bm_run *run, const bm_config *now);

/* Compares the settings of a checkpoint, `text` in its header, with those of
 * this job. Fails with BM_ERR_CONFIG if it is of another run, or as
 * bm_config_read. */
BM_CHECKED bm_status bm_run_compare_text(const bm_config *now, const char *path,
                                         const char *text);

/* *text <- all settings, as in config.ini; free with free(). */
BM_CHECKED bm_status bm_run_settings_text(const bm_config *config, char **text);

/*
 * Collective. Ranks that mpirun or srun has started by hand have read their own
 * copy of the configuration. Fails with BM_ERR_CONFIG if settings differ from
 * rank 0's; the message lists them.
 */
BM_CHECKED bm_status bm_run_same_settings(bm_comm *comm,
                                          const bm_config *config);

/* Fails as bm_run_open would, except for a directory in use; writes nothing. */
BM_CHECKED bm_status bm_run_check(const char *directory,
                                  const bm_config *config);

#endif
