/*
 * search.h - which trial to train next, and how far: asynchronous successive
 * halving (ASHA, Li et al. 2020) over points of the unit cube.
 *
 * A trial is a point. It is trained in rungs, each with more epochs; after a
 * rung, the best 1/reduction of the trials that have reached it are promoted to
 * the next. New points come from a sequence of low discrepancy (Roberts 2018)
 * and, as soon as there are enough results, from a model of them (gauss.h), of
 * which the rung is one more axis.
 *
 * Jobs are placed on a virtual clock: `slots` run at a time, and a job takes as
 * long as it has epochs. A decision uses the results of all jobs that ended
 * before it on that clock, and of no other. So the same trials come out however
 * many jobs run at a time in truth, and in whatever order they end.
 *
 *     BM_TRY(bm_search_new(&s, &settings, space));
 *     for (;;) {
 *         state = bm_search_next(s, &job);
 *         BM_SEARCH_JOB: train job.trial up to rung job.rung, some time
 *         BM_SEARCH_WAIT: bm_search_tell() a result first
 *         BM_SEARCH_END: all jobs have been handed out
 *     }
 *     bm_search_free(s);
 */
#ifndef BM_CLI_TUNE_SEARCH_H
#define BM_CLI_TUNE_SEARCH_H

#include "cli/tune/gauss.h"

#include <stdbool.h>
#include <stdint.h>

enum { BM_SEARCH_RUNGS = 6, BM_SEARCH_AXES = BM_GAUSS_AXES - 1 }; /* the most */

typedef struct bm_search_settings {
    uint64_t seed;
    size_t axes;         /* d, at most BM_SEARCH_AXES */
    const double *given; /* [d], the point of the first trial, which is trained
                            anyway and takes no budget; NULL: none */
    bool given_apart;    /* that trial is not at this point in truth: the model
                            leaves its results out */
    int rungs;
    int reduction; /* 2 or more */
    int slots;
    bool model;    /* else all points come from the sequence */
    double epochs; /* budget of all jobs; decides only where the search ends, so
                      that a larger one continues it */
    size_t trials; /* the most */
} bm_search_settings;

/* How good a point is without a trial. The search takes one of the best grade
 * that it finds. */
typedef enum bm_grade {
    BM_GOOD,     /* no warnings */
    BM_AS_GIVEN, /* no warnings that the given point does not have */
    BM_VALID,    /* it can be trained */
    BM_REFUSED,  /* it cannot, or it is a repetition */
} bm_grade;

/* What the search asks about a point x [d]. */
typedef struct bm_search_space {
    void *self;
    /* Epochs of a trial from its start to the end of a rung; the last rung has
     * all of them. */
    long (*epochs)(void *self, const double *x, int rung);
    bm_grade (*grade)(void *self, const double *x);
} bm_search_space;

typedef enum bm_search_state {
    BM_SEARCH_JOB,
    BM_SEARCH_WAIT,
    BM_SEARCH_END,
} bm_search_state;

typedef struct bm_search_job {
    size_t trial;
    int rung;
} bm_search_job;

typedef enum bm_search_origin {
    BM_ORIGIN_GIVEN,
    BM_ORIGIN_SEQUENCE,
    BM_ORIGIN_MODEL,
} bm_search_origin;

typedef struct bm_search bm_search;

/* `settings` are copied. Fails with BM_ERR_MEMORY, as the next two do. */
BM_CHECKED bm_status bm_search_new(bm_search **out,
                                   const bm_search_settings *settings,
                                   bm_search_space space);
void bm_search_free(bm_search *s); /* NULL: no-op */

BM_CHECKED bm_status bm_search_next(bm_search *s, bm_search_job *out,
                                    bm_search_state *state);

/* The result of a job, lower is better; INFINITY: the trial failed. */
void bm_search_tell(bm_search *s, bm_search_job job, double score);

/* ---- what is known ------------------------------------------------------- */

size_t bm_search_trials(const bm_search *s);
const double *bm_search_point(const bm_search *s, size_t trial); /* [d] */
bm_search_origin bm_search_origin_of(const bm_search *s, size_t trial);

/* The score after a rung; NAN: not known yet. */
double bm_search_score(const bm_search *s, size_t trial, int rung);

/* The last rung with a score; -1: none. */
int bm_search_rung(const bm_search *s, size_t trial);

/* The model of all results so far, for points x [d + 1]; the last number is how
 * far a trial was trained, 1 at its end. NULL: there are too few. Free it with
 * bm_gauss_free. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_search_model(const bm_search *s, bm_gauss **out);

/* Epochs of the budget that the jobs handed out so far take. */
double bm_search_spent(const bm_search *s);

/* Trials by merit: by the last rung they have reached, then by its score.
 * out [bm_search_trials]. Failed ones come last. */
void bm_search_rank(const bm_search *s, size_t *out);

#endif
