/*
 * share.h - a worker's share of a block, in memory: what the reader's thread
 * fills and mini-batches are made from.
 */
#ifndef BM_IO_BATCH_SHARE_H
#define BM_IO_BATCH_SHARE_H

#include "compute/batch.h"
#include "io/batch/plan.h"

/* A sequence, in the share's memory. */
typedef struct bm_sample {
    bm_stored x;
    const int32_t *targets; /* [labels] */
    int32_t frames, labels;
} bm_sample;

/* How many of each come before something. */
typedef struct bm_place {
    size_t sequences, frames, labels;
} bm_place;

/* Starts as {0}, is reused from block to block. Units lie in one piece of
 * memory: shares are about equal from block to block, units are not. */
typedef struct bm_share {
    bm_cut cut; /* its mini-batches */
    size_t n_units;
    size_t *units;      /* [n_units]: numbers in the data set, rising */
    bm_place *begin;    /* [n_units + 1]: where they lie, and where all end */
    bm_sequences all;   /* unit after unit, each with room for floats */
    bool packed;        /* features stay as they are stored: set by who reads */
    bm_sample *samples; /* [cut.n_sequences] */
    size_t room_units, room_samples;
} bm_share;

/* Finds out what there is to be read. */
BM_CHECKED bm_status bm_share_plan(bm_share *s, const bm_dataset *d,
                                   const bm_plan *p, int64_t block, int worker);
void bm_share_free(bm_share *s);

/* Reads its unit number `i`. */
BM_CHECKED bm_status bm_share_read(bm_share *s, bm_dataset *d, size_t i);

/* One of its sequences, by its number in the data set. */
const bm_sample *bm_share_sample(const bm_share *s, const bm_dataset *d,
                                 int64_t sequence);

#endif
