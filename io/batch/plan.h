/*
 * plan.h - which sequences each worker trains on, block by block.
 *
 * A plan is a pure function of (seed, epoch, data set, N, settings): it
 * shuffles units over all shards, cuts them into blocks of about equal frames,
 * deals the units of a block to N workers, or to fewer, in shares balanced by
 * frames, and cuts a share into mini-batches. All ranks compute the same plan
 * without communication, and the number of ranks does not influence it. A
 * position is two integers. The shares of an epoch contain each sequence of the
 * data set exactly once, for any N.
 *
 * Functions that can fail return BM_ERR_MEMORY.
 */
#ifndef BM_IO_BATCH_PLAN_H
#define BM_IO_BATCH_PLAN_H

#include "core/config/series.h"
#include "io/shard/dataset.h"

/* A block of a run: all that a restart needs. */
typedef struct bm_position {
    int64_t epoch;
    int64_t block;
} bm_position;

/* The order of the sequences in an epoch. */
typedef enum bm_order {
    BM_ORDER_RANDOM,
    BM_ORDER_SORTED,    /* short ones first */
    BM_ORDER_SORTAGRAD, /* sorted in the first epoch, then random (Amodei and
                           others 2016) */
    BM_ORDER_LAPLACE,   /* random, without the last step (RETURNN) */
    BM_ORDER_FILE       /* as in the shards */
} bm_order;

/* From [batch] (io/batch/batch_settings.h) and the size in [block]
 * (bmuf/block_settings.h). */
typedef struct bm_plan_settings {
    long sequences; /* in a mini-batch; 0: `frames` decides */
    long frames;    /* limit of a mini-batch, padding included; 0: `sequences`
                       decides; both 0: bm_plan_sized */
    bm_order order;
    long buckets; /* in random and Laplace order, a share is sorted by length in
                     runs of this number of mini-batches; in random order the
                     mini-batches are then shuffled */
    int workers;  /* that the default size of a mini-batch is for; 0: one */
    long accumulate; /* mini-batches of an update; 0: as 1. Not part of the
                        plan */
    long frames_per_worker, frames_total, steps; /* size of a block: one of them
                                                    is set */
    bm_series sizes; /* of blocks, which change at these epochs; n = 0: they do
                        not */
    long active;     /* workers that have shares; 0: all */
    bm_series actives; /* as sizes; both together are a bm_series */
} bm_plan_settings;

/* Defaults are the same for up to this number of workers. With N, more than
 * these, mini-batches and blocks have as many times fewer sequences:
 * docs/decisions/25-many-workers.md. */
enum { BM_FEW_WORKERS = 4 };

/* *s with a size of mini-batches: if it has none, a 1000th of the sequences of
 * the set, but at least 4 and at most 16; with many workers 4 / N of that, but
 * at least one. */
bm_plan_settings bm_plan_sized(const bm_plan_settings *s, const bm_dataset *d);

/* *s with the size of blocks, the workers that have shares, and the order in an
 * epoch. */
bm_plan_settings bm_plan_in_epoch(const bm_plan_settings *s, int64_t epoch);

/* The epochs at which sizes or workers of blocks change. */
bm_series bm_plan_changes(const bm_plan_settings *s);

/*
 * *out: the size of a block in frames, all workers together, before blocks are
 * made equal. If the size is set in steps, it is that number of mini-batches
 * per worker times their mean size: s->sequences times the mean length, or the
 * mean of random shares of that size that are cut by frames.
 */
BM_CHECKED bm_status bm_plan_block_frames(const bm_plan_settings *s,
                                          const bm_dataset *d, int workers,
                                          double *out);

/*
 * Cuts the units of a data set, see bm_dataset_cut: into sequences where these are
 * sorted by length, else if a worker's share of a block has fewer than sixteen
 * units on average, so that shares are even, and a share of a list in order of
 * speakers is not of one speaker.
 */
BM_CHECKED bm_status bm_plan_fit(const bm_plan_settings *s, bm_dataset *d,
                                 int workers);

typedef struct bm_plan bm_plan;

/* The plan of an epoch. *s is copied; `d` is borrowed and must outlive the
 * plan. One size of a block must be set, and at most one of a mini-batch. Free
 * with bm_plan_free; NULL is a no-op. */
BM_CHECKED bm_status bm_plan_new(bm_plan **out, const bm_dataset *d,
                                 const bm_plan_settings *s, int workers,
                                 uint64_t seed, int64_t epoch);
void bm_plan_free(bm_plan *p);

/* An epoch of all workers. */
typedef struct bm_epoch_size {
    double blocks, frames;
} bm_epoch_size;

/* Blocks of the epoch, equal in all epochs with the same size of a block; 0 if
 * there are no sequences. */
int64_t bm_plan_blocks(const bm_plan *p);

/* *units: the units of a worker's share as numbers in the data set, borrowed.
 * Returns their number. */
size_t bm_plan_units(const bm_plan *p, int64_t block, int worker,
                     const size_t **units);

/* The mean by the largest number of frames of the shares of a block: the
 * fraction of the time that those with shares are busy at equal speed. 1 if all
 * shares are equal, small if units are large compared with a share. */
double bm_plan_balance(const bm_plan *p, int64_t block);

/*
 * The mini-batches of a share: the sequences of all of them end to end, as
 * numbers in the data set, and where each mini-batch ends. Starts as {0}, can
 * be reused; owns its arrays, free with bm_cut_free.
 */
typedef struct bm_cut {
    size_t n_batches, n_sequences;
    int64_t *sequences; /* [n_sequences] */
    size_t *ends;       /* [n_batches] */
    size_t sequences_capacity, ends_capacity;
} bm_cut;

/* Cuts a worker's share of a block into mini-batches. */
BM_CHECKED bm_status bm_plan_cut(const bm_plan *p, int64_t block, int worker,
                                 bm_cut *cut);
void bm_cut_free(bm_cut *cut);

/* *steps: the mini-batches of the longest share of a block; 0 past the last
 * block. */
BM_CHECKED bm_status bm_plan_steps(const bm_plan *p, int64_t block,
                                   int64_t *steps);

/* Sums over mini-batches. */
typedef struct bm_filling {
    double batches;
    double frames; /* of sequences */
    double padded; /* of sequences and padding */
} bm_filling;

/* Adds all mini-batches of a block to *sum. */
BM_CHECKED bm_status bm_plan_fill(const bm_plan *p, int64_t block,
                                  bm_filling *sum);

#endif
