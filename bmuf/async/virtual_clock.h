/*
 * virtual_clock.h - a simulated clock: which workers exchange with the
 * parameter server, and in which order.
 *
 * Step i of worker k, a mini-batch or several, takes
 *
 *     seconds_k max(0.1, 1 + spread xi),    xi normal, of seed, k, block, i
 *
 * All workers with data start a block at time 0. A worker pushes at the end of
 * its period. When `group` workers wait, or all that still have data, they make
 * one update together; their next periods start at the time of the last push.
 * Of simultaneous pushes, that of the lowest worker is first.
 *
 *     bm_virtual_clock_block(clock, at, steps);
 *     while ((n = bm_virtual_clock_next(clock, who)) > 0) {
 *         the n workers in `who` have trained on their periods; update W
 *         bm_virtual_clock_resume(clock, who, n);
 *     }
 *
 * The order is a function of the settings and the lengths of shares, equal on
 * all ranks and in each run. An exchange takes no time.
 */
#ifndef BM_BMUF_ASYNC_VIRTUAL_CLOCK_H
#define BM_BMUF_ASYNC_VIRTUAL_CLOCK_H

#include "bmuf/async/async_worker.h"
#include "bmuf/async/clock_settings.h"

#include <stdbool.h>
#include <stdint.h>

/* Reports `times` that are invalid. */
void bm_clock_check(const bm_config *config, bm_faults *faults);

typedef struct bm_virtual_clock bm_virtual_clock;

/* The policy is borrowed; its group may change between blocks. Fails with
 * BM_ERR_CONFIG for invalid `times`, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_virtual_clock_open(bm_virtual_clock **out,
                                           const bm_clock_settings *settings,
                                           const bm_server_policy *policy,
                                           int workers, uint64_t seed);
void bm_virtual_clock_close(bm_virtual_clock *c);

/* Starts a block. steps [workers]: those of each worker's share. */
void bm_virtual_clock_block(bm_virtual_clock *c, bm_position at,
                            const double *steps);

/* Writes the workers of the next update to who [workers], in ascending order;
 * returns how many: 0 when all shares have ended. */
int bm_virtual_clock_next(bm_virtual_clock *c, int *who);

/* Starts the next periods of these n workers. */
void bm_virtual_clock_resume(bm_virtual_clock *c, const int *who, int n);

/* The worker's current period; empty when its share has ended. */
bm_period bm_virtual_clock_period(const bm_virtual_clock *c, int worker);

/* Simulated seconds since the start of the block. */
double bm_virtual_clock_now(const bm_virtual_clock *c);

#endif
