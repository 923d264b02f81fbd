/*
 * virtual_clock.h - the virtual clock: who meets the parameter server, and
 * when.
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
 *     bm_virtual_clock_block(pace, at, steps);
 *     while ((n = bm_virtual_clock_next(pace, who)) > 0) {
 *         the n workers in `who` have learned from period(worker); update
 *         bm_virtual_clock_go_on(pace, who, n);
 *     }
 *
 * So the order of things is a function of settings and of the lengths of
 * shares, the same on all ranks and in each run; meeting costs no time.
 */
#ifndef BM_BMUF_ASYNC_VIRTUAL_CLOCK_H
#define BM_BMUF_ASYNC_VIRTUAL_CLOCK_H

#include "bmuf/async/async_worker.h"

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

typedef struct bm_virtual_clock bm_virtual_clock;

/* What `times` says that is not of use is BM_ERR_CONFIG. */
BM_CHECKED bm_status bm_virtual_clock_open(
    bm_virtual_clock **out, const bm_clock_settings *settings,
    const bm_server_policy *server_policy, int workers, uint64_t seed);
void bm_virtual_clock_close(bm_virtual_clock *p);

/* A block begins; steps[k]: mini-batches of worker k's share. */
void bm_virtual_clock_block(bm_virtual_clock *p, bm_position at,
                            const double *steps);

/* Numbers of the workers that make the next update, rising; returns how many:
 * 0 where all shares have ended. */
int bm_virtual_clock_next(bm_virtual_clock *p, int *who);

/* They begin their next periods. */
void bm_virtual_clock_go_on(bm_virtual_clock *p, const int *who, int n);

/* The period that a worker is at; an empty one: its share has ended. */
bm_period bm_virtual_clock_period(const bm_virtual_clock *p, int worker);

/* Now, in the clock's seconds since the block began. */
double bm_virtual_clock_now(const bm_virtual_clock *p);

#endif
