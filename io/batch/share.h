/*
 * share.h - a worker's share of a block in memory. The reader's thread fills
 * it; collate.h makes mini-batches from it.
 */
#ifndef BM_IO_BATCH_SHARE_H
#define BM_IO_BATCH_SHARE_H

#include "compute/batch.h"
#include "io/batch/plan.h"
#include "io/batch/sound_augment.h"

/* A sequence; pointers into the memory of the share. */
typedef struct bm_sample {
    bm_stored x;
    const int32_t *targets; /* [labels] */
    int32_t frames, labels;
} bm_sample;

/* A place in the share: the numbers before it. */
typedef struct bm_share_offsets {
    size_t sequences, frames, labels; /* the most, if stretched */
} bm_share_offsets;

/* Starts as {0}, is reused from block to block, free with bm_share_free. All
 * units share one allocation: shares have about the same size in all blocks,
 * units do not. */
typedef struct bm_share {
    bm_cut cut; /* its mini-batches */
    size_t n_units;
    size_t *units; /* [n_units]: numbers in the data set, ascending */
    /* [n_units + 1]: where each begins; last: the end */
    bm_share_offsets *begin;
    bm_sequences all; /* unit after unit, each with room for floats */
    bool packed;      /* set by the caller: keep features as stored */
    double stretch;   /* set by the caller, as bm_augmenter_stretch says; up to
                           1: sequences keep their length */
    bool per_frame;   /* set by the caller: targets are stretched, too */
    bm_sample *samples; /* [cut.n_sequences] */
    size_t units_capacity, samples_capacity;
} bm_share;

/* Sets cut, units and begin for a worker's share of a block, and makes room to
 * read it. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_share_plan(bm_share *s, const bm_dataset *d,
                                   const bm_plan *p, int64_t block, int worker);
void bm_share_free(bm_share *s);

/* Reads units[i]. Fails as bm_dataset_read does. */
BM_CHECKED bm_status bm_share_read(bm_share *s, bm_dataset *d, size_t i);

/* What changes sequences in an epoch of training. */
typedef struct bm_changes {
    bm_sound_augmenter *sound; /* first; NULL: none */
    bm_augmenter *augmenter;
    bm_fit fit;
    uint64_t seed;
    int64_t epoch;
} bm_changes;

/* Changes the sequences of units[i], which was read as floats. Fails as
 * bm_sound_augment does. */
BM_CHECKED bm_status bm_share_augment(bm_share *s, const bm_dataset *d,
                                      size_t i, const bm_changes *changes);

/* A sequence of a unit that was read, by its number in the data set;
 * borrowed. */
const bm_sample *bm_share_sample(const bm_share *s, const bm_dataset *d,
                                 int64_t sequence);

#endif
