/*
 * progress.h - one line on a terminal, redrawn in place: where training is, how
 * fast, how long still. Elsewhere nothing: then the log has a line per block.
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

/* Whether stderr, or that of the supervisor above, is a terminal. */
bool bm_progress_open(bool here);
void bm_progress_show(const bm_progress *p);
/* Ends with the line erased. */
void bm_progress_close(void);

#endif
