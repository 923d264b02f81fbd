/*
 * scoring.h - scores a model, or the model of a run, on a data set: for bmuf
 * eval, compare and report.
 *
 *     bm_scoring s = {.comm = comm, .be = device.be};
 *
 *     BM_TRY_DONE(bm_comm_agree(comm, bm_scoring_open(&s, run, dir, false)));
 *     BM_TRY_DONE(bm_scoring_run(&s, &plan, NULL));
 *     BM_TRY_DONE(bm_bootstrap(s.labels, s.data->n, &interval));
 *   done:
 *     bm_scoring_close(&s);
 */
#ifndef BM_CLI_SCORE_SCORING_H
#define BM_CLI_SCORE_SCORING_H

#include "bmuf/trainer/evaluate.h"
#include "models/bootstrap.h"
#include "recognise/recogniser.h"

#include <stdio.h>

/* Shares of the data set. The number does not depend on the ranks, so that the
 * results do not either. */
enum { BM_SHARES = 64 };

typedef struct bm_scoring {
    bm_comm *comm;    /* borrowed */
    bm_backend *be;   /* borrowed */
    char model[4096]; /* the file that is scored */
    bm_recogniser net;
    bm_dataset *data;
    bm_evaluation result;
    bm_error_count *labels,
        *words;                  /* [data->n] of every sequence, on all ranks; 0
                                 without a reference */
    const bm_observer *observer; /* while it runs */
    size_t seen;                 /* sequences of this rank */
} bm_scoring;

/* Each rank by itself: opens the model of `path` and the data set, and checks
 * that they fit; `force`: although features were made with other settings.
 * Fails as bm_recogniser_find, bm_recogniser_read, bm_dataset_open and
 * bm_recogniser_fits. */
BM_CHECKED bm_status bm_scoring_open(bm_scoring *s, const char *path,
                                     const char *directory, bool force);

/* Collective. Fills result, labels and words, with a bar of progress. `plan`:
 * of mini-batches; `observer` may be NULL. Fails as bm_evaluate. */
BM_CHECKED bm_status bm_scoring_run(bm_scoring *s, const bm_plan_settings *plan,
                                    const bm_observer *observer);

void bm_scoring_close(bm_scoring *s);

#endif
