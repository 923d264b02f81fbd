/* numbers.h - what the numbers of a run's checkpoint are, after those of the
 * learning-rate schedule. */
#ifndef BM_CLI_TRAIN_NUMBERS_H
#define BM_CLI_TRAIN_NUMBERS_H

#include "sgd/schedule.h"

enum {
    BM_NUMBER_LOSS = BM_SCHEDULE_STATE,
    BM_NUMBER_EPOCHS, /* done */
    BM_NUMBER_BLOCKS, /* done */
    BM_NUMBER_FRAMES,
    BM_NUMBER_SECONDS,
    BM_NUMBER_ENDED, /* the schedule ended training */
    BM_NUMBER_RATE,
    BM_NUMBER_RHO,    /* of bmuf/local_state.h */
    BM_NUMBER_WAITED, /* of the schedule; older checkpoints have 0 */
    BM_NUMBER_CHANCE, /* likewise */
};

#endif
