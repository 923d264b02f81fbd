/*
 * training.h - the state of a training run on one rank, its checkpoints and its
 * reports. The loop is in train.c.
 */
#ifndef BM_CLI_TRAIN_TRAINING_H
#define BM_CLI_TRAIN_TRAINING_H

#include "bmuf/trainer/evaluate.h"
#include "bmuf/trainer/learner.h"
#include "cli/device.h"
#include "cli/telemetry/telemetry.h"
#include "cli/train/origin.h"
#include "cli/train/probe.h"
#include "cli/train/run.h"
#include "cli/train/tracing.h"
#include "io/model/checkpoint_saver.h"
#include "recognise/recogniser.h"

/* The best model on data.dev so far, in RUN/model-best.safetensors. */
typedef struct bm_best_model {
    int64_t epoch;    /* epochs done; 0: there is none yet */
    double ler, loss; /* on data.dev */
    char data[16];    /* "dev", or "dev-ema": a moving average */
} bm_best_model;

typedef struct bm_training {
    bm_comm *comm; /* borrowed, as the next four */
    const bm_settings *set;
    const bm_config *config;
    bm_run *run;
    bm_device *device;

    char newest[2200]; /* the run's newest checkpoint when it was opened; "":
                          there was none */
    bm_origin origin;  /* what a new run starts from */

    bm_dataset *train, *dev, *test;
    bm_recogniser net;
    bm_reader *reader;
    bm_learner *learner;
    bm_trainer *trainer;
    bm_evaluator *on_dev, *on_test;
    bm_probe probe;
    bm_schedule schedule;
    float *kept; /* [n] on the backend: w, while another model is in it */
    float *host; /* [n]: the last model that train.c copied */
    bm_state *states;
    size_t n_states;
    char *config_text;
    bm_tracing tracing;
    bm_telemetry *telemetry; /* NULL: none */

    long n_epochs;               /* of the run */
    long until;                  /* stop after this epoch; 0: at the end */
    double momentum, block_rate; /* eta and zeta at its start */
    int64_t epochs, blocks;      /* done */
    double frames, seconds;
    double began;   /* bm_clock() at program start */
    double model_s; /* seconds spent on writing models */
    bool ended;     /* by the schedule */
    bool terminal;  /* there is a progress bar */
    bool started;   /* the journal has `start`, so that `end` may follow */

    bm_saver *saver;
    int64_t saving;    /* blocks in the checkpoint that is being written */
    double still_s;    /* seconds that training has waited for it */
    bm_status unsaved; /* why the last checkpoint was not written */
    int64_t saved;     /* blocks in the newest checkpoint */
    int64_t tries;     /* failed ones since then */
    int lost;          /* paths that the last one could not be written to */

    char dev_about[120]; /* identifies data.dev; "": there is none */
    bm_best_model best;  /* on rank 0 */
    bool best_is_new;    /* since the last block; on rank 0 */
    double error;        /* label errors of the last block in training, as a
                            fraction; NaN: not known */
} bm_training;

bm_params *bm_training_params(const bm_training *t);
bool bm_training_first(const bm_training *t); /* is this rank 0? */

/* Of the model in t->host. */
void bm_training_digest(const bm_training *t, char out[BM_WEIGHTS_DIGEST]);

/* Collective. Opens data and network and checks the settings against them; a run
 * without t->newest takes the weights of its origin. Writes nothing. Fails with
 * BM_ERR_MISSING or BM_ERR_FORMAT if data cannot be read or do not fit the
 * network, with BM_ERR_CONFIG if ranks read different ones, or with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_training_open(bm_training *t);

/* Collective. Opens reader, trainer and evaluators; t->run must be open. */
BM_CHECKED bm_status bm_training_start(bm_training *t);

/* Frees everything that open and start made; accepts a partly opened *t. */
void bm_training_close(bm_training *t);

/* All that training restarts from. */
bm_checkpoint bm_training_describe(bm_training *t);

/*
 * Collective. Writes a checkpoint of this block to RUN and the folders of
 * copies, verifies it, and removes those that train.keep and its like do not
 * keep. Waits for the one before. behind: training goes on once the states are
 * copied, and bm_training_saved ends it; else it is ended here. Writes nothing
 * and fails if bm_trainer_compare does.
 */
BM_CHECKED bm_status bm_training_save(bm_training *t, bool behind);

/* Collective. Ends the checkpoint that is being written, if there is one:
 * waits for it and reports it. A full or failing disk is no failure: it is
 * logged, and t->unsaved is the status, until a later call succeeds. */
BM_CHECKED bm_status bm_training_saved(bm_training *t);

/* Collective. As bm_training_save, for the last checkpoint of this job: fails
 * with t->unsaved, and says which blocks are lost. */
BM_CHECKED bm_status bm_training_save_last(bm_training *t);

/* What the user can do about a bm_disk_failed() status before the same command
 * is run again. */
const char *bm_training_remedy(bm_status status);

/* Whether train.keep_every asks for a checkpoint of this block, the last one of
 * an epoch. */
bool bm_training_keeps(const bm_training *t);

/* Collective. Takes the states of the run that t->origin is of, where they
 * fit, and logs which do. Fails as bm_checkpoint_take and the exchange do. */
BM_CHECKED bm_status bm_training_branch(bm_training *t);

/* Collective. Loads the newest intact checkpoint, of RUN or of a folder of
 * copies, logs a warning for every newer one, and which blocks are trained
 * again; without checkpoints training begins at the start. Fails with
 * BM_ERR_FORMAT if there are checkpoints but none can be used, with
 * BM_ERR_MISSING, BM_ERR_CREATE or BM_ERR_IO if one of them could not be read,
 * with BM_ERR_CONFIG if it belongs to other data. */
BM_CHECKED bm_status bm_training_resume(bm_training *t);

/* Reads t->best from the header of the file, on rank 0, so that file and state
 * cannot differ in a resumed run. No file, or one that was chosen on other
 * training or dev data: there is none yet. A damaged file is a warning. */
void bm_training_best_read(bm_training *t);

/* After an evaluation of t->host on data.dev: rank 0 writes the model if it has
 * a lower label error rate than the best, or the same and a lower loss. If it
 * cannot be written, a warning is logged and the older file stays. data: "dev"
 * or "dev-ema", as in the journal. */
void bm_training_best_offer(bm_training *t, const char *data,
                            const bm_evaluation *e);

/* Events of the journal, lines of the log and the progress bar. Only rank 0
 * writes; others may call them. The first one is collective, and fails as
 * bm_own_place_gather. */
BM_CHECKED bm_status bm_report_start(const bm_training *t);
void bm_report_begin(bm_training *t); /* of the first block */
void bm_report_block(bm_training *t, const bm_block_report *r, double rate,
                     bm_passed passed, double seconds);
void bm_report_eval(bm_training *t, const char *data, const bm_evaluation *e);
/* Training ended early, by a failure or a signal. For bm_report_stop t->host
 * holds the global model. */
void bm_report_failure(const bm_training *t, bm_status status);
void bm_report_stop(const bm_training *t, bool enough); /* by --until */
/* The end event and the final table; `test` may be NULL. t->host holds the
 * global model. */
void bm_report_end(bm_training *t, const bm_evaluation *test);

#endif
