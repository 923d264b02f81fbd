/*
 * training.h - everything that a training run holds on one rank, and what is
 * told of it. The loop is train.c's.
 */
#ifndef BM_CLI_TRAIN_TRAINING_H
#define BM_CLI_TRAIN_TRAINING_H

#include "bmuf/evaluate.h"
#include "bmuf/learner.h"
#include "cli/device.h"
#include "cli/recogniser.h"
#include "cli/train/run.h"
#include "cli/train/tracing.h"

typedef struct bm_training {
    bm_comm *comm; /* borrowed, as the next four */
    const bm_settings *set;
    const bm_config *config;
    bm_run *run;
    bm_device *device;

    bm_dataset *train, *dev, *test;
    bm_recogniser net;
    bm_reader *reader;
    bm_learner *learner;
    bm_trainer *trainer;
    bm_evaluator *on_dev, *on_test;
    bm_schedule schedule;
    float *kept; /* [n] on the backend: w, while something else is in it */
    float *host; /* [n] */
    bm_state *states;
    size_t n_states;
    char *config_text;
    bm_tracing tracing;

    int64_t epochs, blocks; /* done */
    double frames, seconds;
    double began;   /* the program, by the clock */
    double model_s; /* spent on leaving a model */
    bool ended;
    bool terminal;
} bm_training;

bm_params *bm_training_params(const bm_training *t);
bool bm_training_first(const bm_training *t); /* is this rank 0? */

/* Data, network, advice: every rank for itself, before anything is written. */
BM_CHECKED bm_status bm_training_open(bm_training *t);
/* Collective: reader, trainer, evaluators. The run is open by now. */
BM_CHECKED bm_status bm_training_start(bm_training *t);
void bm_training_close(bm_training *t);

/* Collective. A checkpoint, and those too old removed. */
BM_CHECKED bm_status bm_training_save(bm_training *t);
/* Collective. Goes on from the newest checkpoint that is whole, each that is
 * not is named; from the start if there is none. BM_ERR_FORMAT: there are some,
 * but all are damaged; BM_ERR_CONFIG: of other data. */
BM_CHECKED bm_status bm_training_resume(bm_training *t);

/* Lines of the journal, of the log, and the bar; rank 0's alone. */
void bm_report_start(const bm_training *t);
void bm_report_block(bm_training *t, const bm_block_report *r, double rate,
                     bm_passed passed, double seconds);
void bm_report_eval(bm_training *t, const char *data, const bm_evaluation *e);
/* Ends before the last epoch's; `host` holds the global model for a stop. */
void bm_report_failure(const bm_training *t, bm_status status);
void bm_report_stop(const bm_training *t);
/* The end event and the final table; `test` is NULL without data.test. */
void bm_report_end(bm_training *t, const bm_evaluation *test);

#endif
