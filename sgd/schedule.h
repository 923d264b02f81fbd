/*
 * schedule.h - the learning rate as a function of epochs and evaluations. Its
 * state is BM_SCHEDULE_STATE numbers, which checkpoints hold.
 *
 *     cosine        rate (1 + cos(pi epochs / E)) / 2, which falls to 0 at the
 *                   end of all E epochs (Loshchilov and Hutter 2017)
 *     constant      rate
 *     exponential   rate * decay^epochs, epochs counted in fractions
 *     newbob        rate, times decay after each evaluation of the global model
 *                   whose error did not fall by more than `threshold`:
 *                   (new - old) / |new| > -threshold (RETURNN's newbob_rel),
 *                   once an error of 0.8 has been reached
 *
 * During the first `warmup` epochs the rate is multiplied by
 *
 *     0.1 + 0.9 epochs / warmup
 *
 * which starts above 0, as in Goyal et al. 2017, so that the first block
 * trains, too. Nothing here fails.
 */
#ifndef BM_SGD_SCHEDULE_H
#define BM_SGD_SCHEDULE_H

#include "core/config.h"

#include <stdbool.h>

typedef struct bm_schedule_settings {
    const char *kind;
    double decay;
    double threshold;
    long patience; /* newbob: consecutive evaluations without improvement
                      before a decay */
    double least;  /* newbob: training ends when the rate falls below this
                      fraction of the starting rate */
    double warmup; /* epochs */
} bm_schedule_settings;

extern const bm_option bm_schedule_options[];

typedef struct bm_schedule {
    bm_schedule_settings set;
    double start;  /* [train] rate */
    double epochs; /* of the run, after which cosine ends */
    /* state, BM_SCHEDULE_STATE numbers from here on */
    double factor; /* newbob's decays so far */
    double last;   /* error of the last evaluation; negative: none yet */
    double bad;    /* consecutive evaluations without improvement */
    double best;   /* smallest error so far; negative: none yet */
} bm_schedule;

enum { BM_SCHEDULE_STATE = 4 };

/* A schedule at its start, for a run of so many epochs. The text set->kind is
 * borrowed. */
bm_schedule bm_schedule_make(const bm_schedule_settings *set, double rate,
                             long epochs);

/* The rate after `epochs` epochs, which may be a fraction. */
double bm_schedule_rate(const bm_schedule *s, double epochs);

/* Call after each evaluation of the global model, with its error >= 0. Returns
 * true if training should end. An error that is not finite counts as no
 * improvement and is not kept as `last`. */
bool bm_schedule_evaluated(bm_schedule *s, double error);

/* Copy the state to and from numbers [BM_SCHEDULE_STATE]. */
void bm_schedule_save(const bm_schedule *s, double *numbers);
void bm_schedule_load(bm_schedule *s, const double *numbers);

#endif
