/*
 * schedule.h - the learning rate as a function of what has happened. Its state
 * is a few numbers, kept in checkpoints.
 *
 *     constant      rate
 *     exponential   rate * decay^epochs, epochs counted in fractions
 *     newbob        rate, times decay after each evaluation of the global model
 *                   whose error did not fall by more than `threshold`:
 *                   (new - old) / |new| > -threshold (RETURNN's newbob_rel)
 *
 * Any of them begins with a warm-up, if there is one: times 0.1 + 0.9 epochs /
 * warmup until that is 1. (Goyal et al. 2017 begin with a fraction as well: the
 * first block shall learn something too.)
 */
#ifndef BM_SGD_SCHEDULE_H
#define BM_SGD_SCHEDULE_H

#include "core/config.h"

#include <stdbool.h>

typedef struct bm_schedule_settings {
    const char *kind;
    double decay;
    double threshold;
    long patience; /* newbob: evaluations in a row without improvement that
                      pass before one decays */
    double least;  /* newbob: training ends when rate falls below this share of
                      the starting rate */
    double warmup; /* epochs */
} bm_schedule_settings;

extern const bm_option bm_schedule_options[];

typedef struct bm_schedule {
    bm_schedule_settings set;
    double start; /* [train] rate */
    /* state, BM_SCHEDULE_STATE numbers from here on */
    double factor; /* newbob's decays so far */
    double last;   /* error of the last evaluation; negative: none yet */
    double bad;    /* evaluations in a row without improvement */
    double best;   /* smallest error so far; negative: none yet */
} bm_schedule;

enum { BM_SCHEDULE_STATE = 4 };

/* The settings' kind is borrowed. */
bm_schedule bm_schedule_make(const bm_schedule_settings *set, double rate);

/* The rate after so many epochs of training, counted in fractions. */
double bm_schedule_rate(const bm_schedule *s, double epochs);

/* The global model was evaluated: error >= 0. True if training should end. An
 * error that is no finite number is no improvement, and is not remembered. */
bool bm_schedule_evaluated(bm_schedule *s, double error);

/* Writes to and reads from an array of BM_SCHEDULE_STATE numbers. */
void bm_schedule_save(const bm_schedule *s, double *numbers);
void bm_schedule_load(bm_schedule *s, const double *numbers);

#endif
