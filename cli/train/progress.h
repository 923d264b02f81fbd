/*
 * progress.h - the progress bar: one line on a terminal, redrawn in place, with
 * position, speed and time left. Without a terminal it is a no-op, and the log
 * has a line per block instead.
 */
#ifndef BM_CLI_TRAIN_PROGRESS_H
#define BM_CLI_TRAIN_PROGRESS_H

#include <stdbool.h>

typedef struct bm_progress {
    long epoch, epochs; /* counted from 1 */
    long block, blocks; /* of the epoch */
    double loss, frames_per_s, exchange_share;
    long workers;
} bm_progress;

/* Starts the bar if `here` (one rank shows it) and stderr, or the supervisor's
 * stderr, is a terminal. Returns whether it does. */
bool bm_progress_open(bool here);

/* Redraws the bar, at most ten times a second. */
void bm_progress_show(const bm_progress *p);

/* Erases the bar. */
void bm_progress_close(void);

#endif
