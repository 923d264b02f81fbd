/*
 * pace.h - the virtual clock: who meets the parameter server, and when.
 *
 * Mini-batch i of worker k takes
 *
 *     seconds_k max(0.1, 1 + spread xi),    xi normal, of seed, k, block and i
 *
 * All workers with data begin a block at time 0. One whose period is over
 * pushes; when `group` of them have, or all that still have data, those make an
 * update together and go on, at the time when the last of them came. Of two
 * that come at the same time the one with the lower number is first.
 *
 *     bm_pace_block(pace, at, steps);
 *     while ((n = bm_pace_next(pace, who)) > 0) {
 *         the n workers in `who` have learned from period(worker); update
 *         bm_pace_go_on(pace, who, n);
 *     }
 *
 * So the order of things is a function of settings and of the lengths of
 * shares, the same on all ranks and in each run; meeting costs no time.
 */
#ifndef BM_BMUF_PACE_H
#define BM_BMUF_PACE_H

#include "bmuf/guests.h"

#include <stdbool.h>
#include <stdint.h>

/* [clock] */
typedef struct bm_clock_settings {
    const char *kind;  /* virtual or real */
    const char *times; /* seconds of a mini-batch of each worker; or one */
    double spread;
} bm_clock_settings;

extern const bm_option bm_clock_options[];
void bm_clock_check(const bm_config *config, bm_faults *faults);
bool bm_clock_is_real(const bm_clock_settings *settings);

typedef struct bm_pace bm_pace;

/* What `times` says that is not of use is BM_ERR_CONFIG. */
BM_CHECKED bm_status bm_pace_open(bm_pace **out,
                                  const bm_clock_settings *settings,
                                  const bm_terms *terms, int workers,
                                  uint64_t seed);
void bm_pace_close(bm_pace *p);

/* A block begins; steps[k]: mini-batches of worker k's share. */
void bm_pace_block(bm_pace *p, bm_position at, const double *steps);

/* Numbers of the workers that make the next update, rising; returns how many:
 * 0 where all shares have ended. */
int bm_pace_next(bm_pace *p, int *who);

/* They begin their next periods. */
void bm_pace_go_on(bm_pace *p, const int *who, int n);

/* The period that a worker is at; an empty one: its share has ended. */
bm_period bm_pace_period(const bm_pace *p, int worker);

/* Now, in the clock's seconds since the block began. */
double bm_pace_now(const bm_pace *p);

#endif
