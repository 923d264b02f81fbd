/*
 * schedule.h - the learning rate as a function of epochs and evaluations. Its
 * state is in checkpoints.
 *
 *     cosine        rate (1 + cos(pi epochs / E)) / 2, which falls to 0 at the
 *                   end of all E epochs (Loshchilov and Hutter 2017)
 *     onecycle      rises from rate / 25 to rate within `warmup` epochs, or within
 *                   0.3 E if that is 0, then falls to rate / 250000, both along
 *                   half a cosine (Smith and Topin 2018, as PyTorch has it)
 *     noam          rate sqrt(warmup / epochs) after the warm-up (Vaswani et al.
 *                   2017), with its peak at `rate`
 *     constant      rate
 *     exponential   rate * decay^epochs, epochs counted in fractions
 *     newbob        rate, times decay after each evaluation of the global model
 *                   whose error did not fall by more than `threshold`:
 *                   (new - old) / |new| > -threshold (RETURNN's newbob_rel),
 *                   once an error of 0.8 has been reached; with `ramp` also
 *                   after each evaluation after the first decay (nnet1 of
 *                   Kaldi, Eesen)
 *
 * During the first `warmup` epochs the rate of all but onecycle is multiplied by
 *
 *     0.1 + 0.9 epochs / warmup
 *
 * which starts above 0, as in Goyal et al. 2017, so that the first block
 * trains, too.
 *
 * With any kind training ends early after `stop_after` evaluations in a row that
 * are not better than the best one, once an error of 0.8 has been reached.
 * Nothing here fails.
 */
#ifndef BM_SGD_SCHEDULE_H
#define BM_SGD_SCHEDULE_H

#include "core/config/config.h"

#include <stdbool.h>

typedef struct bm_schedule_settings {
    const char *kind;
    double decay;
    double threshold;
    long patience;   /* newbob: consecutive evaluations without improvement
                      before a decay */
    bool ramp;       /* newbob: decays at each evaluation after the first
                      decay */
    double least;    /* newbob: training ends when the rate falls below this
                      fraction of the starting rate */
    double warmup;   /* epochs */
    long stop_after; /* evaluations without a new best error; 0: unlimited */
} bm_schedule_settings;

extern const bm_option bm_schedule_options[];

/* What evaluations have led to; a resumed run needs it. */
typedef struct bm_schedule_state {
    double factor; /* newbob's decays so far */
    double last;   /* error of the last evaluation; negative: none yet */
    double bad;    /* consecutive evaluations without improvement */
    double best;   /* smallest error so far; negative: none yet */
    double waited; /* evaluations since the best one */
} bm_schedule_state;

typedef struct bm_schedule {
    bm_schedule_settings set;
    double start;  /* [train] rate */
    double epochs; /* of the run, after which cosine and onecycle end */
    bm_schedule_state state;
} bm_schedule;

/* A schedule at its start, for a run of `epochs` epochs. The text set->kind is
 * borrowed. */
bm_schedule bm_schedule_make(const bm_schedule_settings *set, double rate,
                             long epochs);

/* The rate after `epochs` epochs, which may be a fraction. */
double bm_schedule_rate(const bm_schedule *s, double epochs);

/* Call after each evaluation of the global model, with its error >= 0. Returns
 * true if training should end. An error that is not finite counts as no
 * improvement and is not kept as `last`. */
bool bm_schedule_evaluated(bm_schedule *s, double error);

/* Writes the setting by which bm_schedule_evaluated has returned true, such as
 * "schedule.stop_after = 3". */
void bm_schedule_explain(const bm_schedule *s, char *out, size_t room);

/* Does the rate of this kind depend on the epochs of the whole run? */
bool bm_schedule_spans_run(const bm_schedule_settings *set);

#endif
