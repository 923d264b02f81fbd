/*
 * reader.h - the shares of the workers hosted on one rank, block by block.
 *
 * A thread reads units, each with one H5Dread for its features and one for its
 * labels, two blocks ahead of the one in use: memory is O(block), and training
 * does not wait for data. Follows the plan of plan.h.
 *
 * Workers' shares of a block may have different numbers of mini-batches. All
 * ranks are told the largest, so that strategies may meet at every step.
 */
#ifndef BM_IO_BATCH_READER_H
#define BM_IO_BATCH_READER_H

#include "compute/backend.h"
#include "io/batch/plan.h"

typedef struct bm_reader bm_reader;

typedef struct bm_reader_settings {
    bm_plan_settings plan;
    int workers;     /* N */
    int first, last; /* of those hosted here: [first, last) */
    uint64_t seed;
    bool once; /* one epoch, then nothing: for evaluation */
} bm_reader_settings;

/*
 * Both are borrowed; the data set's shards are the reader's until it closes,
 * its other fields may be read.
 */
BM_CHECKED bm_status bm_reader_open(bm_reader **out, bm_dataset *d,
                                    bm_backend *be,
                                    const bm_reader_settings *settings,
                                    bm_position from);
void bm_reader_close(bm_reader *r);

/* Moves to a block: the next one, or after the last of an epoch the first of
 * the next; any other move starts reading anew. *steps is the number of
 * mini-batches in the longest share of all N workers; 0 if the epoch has no
 * such block. Fails with what went wrong in the thread. */
BM_CHECKED bm_status bm_reader_block(bm_reader *r, bm_position at,
                                     int64_t *steps);

/* Mini-batches in the share of a worker hosted here. */
int64_t bm_reader_steps(const bm_reader *r, int worker);

/*
 * Mini-batch `step` of a worker's share, borrowed until the next call; NULL
 * past the end of the share. A sequence whose features are not all finite has 0
 * frames, so that the loss skips and counts it; the first ten are logged.
 */
BM_CHECKED bm_status bm_reader_batch(bm_reader *r, int worker, int64_t step,
                                     const bm_batch **out);

/* Frames of a worker's share of the block, in all its mini-batches. */
double bm_reader_frames(const bm_reader *r, int worker);

/* Blocks of an epoch. */
int64_t bm_reader_blocks(const bm_reader *r);

/* Seconds that calls have waited for data since the last call of this. */
double bm_reader_stall(bm_reader *r);

/* A sequence's name; NULL is never given, "?" if it cannot be read. */
const char *bm_reader_tag(bm_reader *r, int64_t sequence);

#endif
