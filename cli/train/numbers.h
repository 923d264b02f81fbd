/* numbers.h - what the numbers of a run's checkpoint are. Their places are those of
 * older checkpoints. */
#ifndef BM_CLI_TRAIN_NUMBERS_H
#define BM_CLI_TRAIN_NUMBERS_H

enum {
    BM_NUMBER_FACTOR, /* of bm_schedule_state, as the next three */
    BM_NUMBER_LAST,
    BM_NUMBER_BAD,
    BM_NUMBER_BEST,
    BM_NUMBER_LOSS,
    BM_NUMBER_EPOCHS, /* done */
    BM_NUMBER_BLOCKS, /* done */
    BM_NUMBER_FRAMES,
    BM_NUMBER_SECONDS,
    BM_NUMBER_ENDED, /* the schedule ended training */
    BM_NUMBER_RATE,
    BM_NUMBER_RHO,    /* of bmuf/local_state.h */
    BM_NUMBER_WAITED, /* of bm_schedule_state; older checkpoints have 0 */
    BM_NUMBER_CHANCE, /* likewise */
};

#endif
