/*
 * evaluate.h - evaluates a model on a data set, over all ranks: loss, label and
 * word error rates, transcripts. The bits are the same for any number of ranks.
 */
#ifndef BM_BMUF_TRAINER_EVALUATE_H
#define BM_BMUF_TRAINER_EVALUATE_H

#include "comm/comm.h"
#include "io/batch/reader.h"
#include "models/edit.h"
#include "models/model.h"

typedef struct bm_evaluation {
    bm_score score;    /* without sequences that the loss skips */
    double counted;    /* what the loss is a mean over: sequences, or frames */
    double sequences;  /* all of them */
    double frames;     /* of data, of all sequences */
    double references; /* sequences that have one: what follows is of these, and
                          so is the score */
    double labels;     /* of the references */
    double substitutions, deletions, insertions;
    double words; /* these are 0 if labels do not form words */
    double word_substitutions, word_deletions, word_insertions;
    double wrong; /* sequences with any error */
    double seconds;
} bm_evaluation;

/* Per sequence or frame; errors / labels; errors / words. NaN: there are
 * none. */
double bm_evaluation_loss(const bm_evaluation *e);
double bm_evaluation_ler(const bm_evaluation *e);
double bm_evaluation_wer(const bm_evaluation *e);
double bm_evaluation_word_errors(const bm_evaluation *e); /* their number */

/* A sequence and what the model makes of it; all borrowed. */
typedef struct bm_seen {
    int64_t sequence; /* its number in the data set */
    const char *tag;
    const int32_t *labels; /* [n] of the best path */
    size_t n;
    bool has_reference;       /* else what follows, except logits, is 0 */
    const int32_t *reference; /* [n_reference] */
    size_t n_reference;
    bm_edits edits; /* from the reference */
    size_t words;   /* of it; these are 0 if labels do not form words */
    bm_edits word_edits;
    const float *logits; /* [frames, C], `stride` floats apart */
    size_t frames, stride;
} bm_seen;

/* `see` is called for every sequence of this rank's shares, in any order. Its
 * failure ends the evaluation. */
typedef struct bm_observer {
    void *self;
    bm_status (*see)(void *self, const bm_seen *seen);
} bm_observer;

typedef struct bm_evaluator bm_evaluator;

/*
 * For `workers` shares, dealt to the ranks; all arguments are borrowed and must
 * outlive it. The model must keep a score for each share of this rank. `plan`
 * sets the size of mini-batches; they are sorted by length. Fails with
 * BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_evaluator_open(bm_evaluator **out, bm_comm *comm,
                                       bm_model *model, bm_dataset *data,
                                       const bm_plan_settings *plan,
                                       int workers);
/* e may be NULL. */
void bm_evaluator_close(bm_evaluator *e);

/* Collective. `observer` may be NULL. Fails, on all ranks, as the reader or the
 * observer of any rank does, or with BM_ERR_FORMAT for an infeasible sequence
 * if model.infeasible = error. */
BM_CHECKED bm_status bm_evaluate(bm_evaluator *e, const bm_observer *observer,
                                 bm_evaluation *out);

#endif
