/*
 * evaluate.h - a model on a data set, over all ranks: loss, label and word
 * error rates, transcripts. The same bits for any number of ranks.
 */
#ifndef BM_BMUF_EVALUATE_H
#define BM_BMUF_EVALUATE_H

#include "comm/comm.h"
#include "io/batch/reader.h"
#include "models/edit.h"
#include "models/model.h"

typedef struct bm_evaluation {
    bm_score score;   /* as the loss counts: without what it skips */
    double counted;   /* what the loss is a mean over: sequences, or frames */
    double sequences; /* all of them from here on */
    double frames;    /* of data */
    double labels;    /* of the references */
    double substitutions, deletions, insertions;
    double words, word_errors; /* of texts with spaces; 0: there are none */
    double wrong;              /* sequences with any error */
    double seconds;
} bm_evaluation;

double bm_evaluation_loss(const bm_evaluation *e); /* per sequence or frame */
double bm_evaluation_ler(const bm_evaluation *e);  /* errors / labels */

/* Is shown every sequence of the shares of this rank, in no special order:
 * labels of the best path, and logits [frames, C], `stride` floats apart. */
typedef struct bm_witness {
    void *self;
    bm_status (*see)(void *self, int64_t sequence, const char *tag,
                     const int32_t *labels, size_t n, const float *logits,
                     size_t frames, size_t stride);
} bm_witness;

typedef struct bm_evaluator bm_evaluator;

/*
 * For `workers` shares, of which each rank has some; all is borrowed. The
 * model keeps at least one score for each share of this rank. `plan` says how
 * mini-batches are cut; their order is by length.
 */
BM_CHECKED bm_status bm_evaluator_open(bm_evaluator **out, bm_comm *comm,
                                       bm_model *model, bm_dataset *data,
                                       const bm_plan_settings *plan,
                                       int workers);
void bm_evaluator_close(bm_evaluator *e);

/* Collective. `witness` may be NULL. */
BM_CHECKED bm_status bm_evaluate(bm_evaluator *e, const bm_witness *witness,
                                 bm_evaluation *out);

#endif
