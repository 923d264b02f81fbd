/*
 * reader.h - reads the shares of the workers hosted on one rank, block by
 * block.
 *
 * A thread reads units, each with one H5Dread for its features and one for its
 * labels, two blocks ahead of the one in use. Memory is proportional to a
 * block, and training does not wait for data. The shares are those of plan.h.
 * The thread augments sequences, too, if the settings say so: their frames are
 * then those that are trained on, not those of the plan.
 *
 * Shares of a block may have different numbers of mini-batches. All ranks get
 * the largest number, so that a strategy can exchange at every step. No
 * function is collective; call them from one thread.
 */
#ifndef BM_IO_BATCH_READER_H
#define BM_IO_BATCH_READER_H

#include "compute/backend.h"
#include "io/augment/augment.h"
#include "io/batch/audited.h"

typedef struct bm_reader bm_reader;

typedef struct bm_reader_settings {
    bm_plan_settings plan;
    int workers;     /* N */
    int first, last; /* workers hosted here: [first, last) */
    uint64_t seed;
    bool once;                   /* stop after one epoch: for evaluation */
    bm_audit_settings audit;     /* in these blocks it also reads the shares */
    int audit_first, audit_last; /* of workers [audit_first, audit_last) */
    const bm_augment_settings
        *augment; /* borrowed while it opens; NULL: none */
    bm_fit fit;   /* of augmented sequences and the network */
} bm_reader_settings;

/*
 * Starts reading at `from`. `d` and `be` are borrowed and must outlive the
 * reader. Until it is closed, only the reader may use the shards of `d`; other
 * fields may be read. Fails with BM_ERR_MEMORY, or as bm_sound_augmenter_open
 * does. Close with bm_reader_close;
 * NULL is a no-op.
 */
BM_CHECKED bm_status bm_reader_open(bm_reader **out, bm_dataset *d,
                                    bm_backend *be,
                                    const bm_reader_settings *settings,
                                    bm_position from);
void bm_reader_close(bm_reader *r);

/* Of the folders that augmentation takes recordings from: their files' names,
 * lengths and rates; 0: there are none. */
uint64_t bm_reader_folders_digest(const bm_reader *r);

/* Moves to a block. Blocks that are not in sequence, over the end of an epoch,
 * restart the thread there. *steps: the mini-batches in the longest share of
 * all N workers; 0 if the epoch has no such block. Fails with the failure of
 * the thread: as bm_dataset_read and bm_sound_augment do; another call reads
 * the block again. */
BM_CHECKED bm_status bm_reader_block(bm_reader *r, bm_position at,
                                     int64_t *steps);

/* Whether the current block is audited. */
bool bm_reader_audited(const bm_reader *r);

/* Mini-batches in the share of a worker hosted here; 0 without a block. */
int64_t bm_reader_steps(const bm_reader *r, int worker);

/*
 * *out: mini-batch `step` of a worker's share, borrowed until the next call;
 * NULL past the end of the share. A sequence with NaN or infinite features has
 * 0 frames, so that the loss skips and counts it; the first ten are logged.
 * Fails as bm_collate does.
 */
BM_CHECKED bm_status bm_reader_batch(bm_reader *r, int worker, int64_t step,
                                     const bm_batch **out);

/* Frames of a worker's share of the current block. */
double bm_reader_frames(const bm_reader *r, int worker);

/* Blocks of an epoch; of the one that the reader was opened in. */
int64_t bm_reader_blocks_of(const bm_reader *r, int64_t epoch);
int64_t bm_reader_blocks(const bm_reader *r);

/* Frames and blocks of an epoch. */
bm_epoch_size bm_reader_epoch(const bm_reader *r, int64_t epoch);

/* Seconds that bm_reader_block waited for data since the last
 * bm_reader_stall. */
double bm_reader_stall(bm_reader *r);

/* The name of a sequence, borrowed; "?" if it cannot be read. Never NULL. */
const char *bm_reader_tag(bm_reader *r, int64_t sequence);

#endif
