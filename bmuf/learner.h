/*
 * learner.h - a model and a reader as the trainer's task: gradients of
 * mini-batches, and a count of what could not be learned from.
 */
#ifndef BM_BMUF_LEARNER_H
#define BM_BMUF_LEARNER_H

#include "bmuf/trainer.h"
#include "io/batch/reader.h"
#include "models/model.h"

typedef struct bm_learner bm_learner;

/*
 * For workers `first` and on, whose scores the model keeps as numbers 0 and on.
 * The model and the reader are borrowed; dropout is drawn from `seed`.
 */
BM_CHECKED bm_status bm_learner_open(bm_learner **out, bm_model *model,
                                     bm_reader *reader, uint64_t seed,
                                     int first);
void bm_learner_close(bm_learner *l);

bm_task bm_learner_task(bm_learner *l);

/* What passed by here since the last call: frames of data, of mini-batches (the
 * same with the padding), and how many of these there were; and frames of those
 * shares' that did not. */
typedef struct bm_passed {
    double frames, padded, batches, left;
} bm_passed;

bm_passed bm_learner_passed(bm_learner *l);

#endif
