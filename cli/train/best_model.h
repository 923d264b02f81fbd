/*
 * best_model.h - the best model on data.dev so far, in
 * RUN/model-best.safetensors. Its header says what it is; a resumed run
 * continues from there, so that file and state cannot differ.
 */
#ifndef BM_CLI_TRAIN_BEST_MODEL_H
#define BM_CLI_TRAIN_BEST_MODEL_H

#include "bmuf/evaluate.h"

#include <stdint.h>

typedef struct bm_training bm_training;

typedef struct bm_best_model {
    int64_t epoch;    /* epochs done; 0: there is none yet */
    double ler, loss; /* on data.dev */
    char data[16];    /* "dev", or "dev-ema": a moving average */
} bm_best_model;

/* Reads the header of the file, on rank 0. No file, or one that was chosen on
 * other training or dev data: there is none yet. A damaged file is a warning. */
void bm_best_model_read(bm_training *t);

/* After an evaluation of t->host on data.dev: rank 0 writes the model if it has
 * a lower label error rate than the best, or the same and a lower loss. If it
 * cannot be written, a warning is logged and the older file stays. data: "dev"
 * or "dev-ema", as in the journal. */
void bm_best_model_offer(bm_training *t, const char *data,
                         const bm_evaluation *e);

#endif
