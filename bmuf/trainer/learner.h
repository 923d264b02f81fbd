/*
 * learner.h - a model and a reader as the trainer's task: gradients of
 * mini-batches, and counts of the data they were computed from.
 */
#ifndef BM_BMUF_TRAINER_LEARNER_H
#define BM_BMUF_TRAINER_LEARNER_H

#include "bmuf/trainer/task.h"
#include "io/batch/reader.h"
#include "models/model.h"

typedef struct bm_learner bm_learner;

/*
 * For workers [first, last), whose scores the model keeps as 0, 1 and so on; if
 * the reader audits, worker `last` is for audits. The model and the reader are
 * borrowed and must outlive it; dropout is drawn from `seed`. Fails with
 * BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_learner_open(bm_learner **out, bm_model *model,
                                     bm_reader *reader, uint64_t seed,
                                     int first, int last);
/* From now on a step of the task is this number of mini-batches: their mean
 * gradient, weighted by samples. params->ready is not called then. Fails with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_learner_accumulate(bm_learner *l, long mini_batches);
/* l may be NULL. */
void bm_learner_close(bm_learner *l);

/* The task, which borrows l. Its gradient fails as bm_reader_batch and
 * bm_infeasible_check_look do. */
bm_task bm_learner_task(bm_learner *l);

/* Counts since the last call, of workers hosted here. */
typedef struct bm_passed {
    double frames;  /* of data in mini-batches */
    double padded;  /* the same with the padding */
    double batches; /* mini-batches */
    double left;    /* frames of the shares that were skipped */
} bm_passed;

bm_passed bm_learner_passed(bm_learner *l);

#endif
