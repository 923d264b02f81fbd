/*
 * advice.h - what block size, block momentum and number of workers come to: the
 * numbers behind a choice, and what is unwise about it (rules of CNTK's
 * documentation, see docs/tuning.md).
 */
#ifndef BM_CLI_REPORT_ADVICE_H
#define BM_CLI_REPORT_ADVICE_H

#include "core/status.h"

#include <stdbool.h>

typedef struct bm_setting {
    int workers;
    bool filtered;         /* else momentum 0, rate 1 */
    bool renamed;          /* under other names than [bmuf]'s */
    bool blocks;           /* exchanges at block ends */
    double momentum;       /* eta */
    double rate;           /* zeta */
    bool adam;             /* is the local update, else momentum SGD */
    bool diloco;           /* is the strategy */
    double local_momentum; /* or beta1 */
    bool reset;            /* of that, at block starts */
    double block_frames;   /* of all workers together */
    double epoch_frames;
    double batch_frames; /* of a mini-batch */
    double balance;      /* part of the time that workers are busy, if they are
                            equally fast; 0: not known */
    double units;        /* of reading, in the data set; 0: not known */
    long epochs;
} bm_setting;

typedef struct bm_gains {
    double block;     /* zeta: displacement per block for a new G */
    double steady;    /* zeta / (1 - eta): for a constant one */
    double blocks;    /* -1 / ln eta: e-folding time of Delta; 0 for eta 0 */
    double frames;    /* the same in frames of all workers, TC = -B / ln eta */
    double per_epoch; /* blocks */
    double steps;     /* mini-batches of a worker per block, tau */
} bm_gains;

bm_gains bm_gains_of(const bm_setting *s);

/*
 * Calls tell() for everything that is unwise. Fails with BM_ERR_CONFIG, and a
 * proposal, if training would end before block momentum has had any effect, if
 * an epoch is one block and there is something to filter, or if a worker would
 * have less than one mini-batch in a block.
 */
BM_CHECKED bm_status bm_advise(const bm_setting *s,
                               void (*tell)(void *self, const char *text),
                               void *self);

#endif
