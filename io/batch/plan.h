/*
 * plan.h - which sequences every worker trains on, block by block.
 *
 * A plan is a pure function of (seed, epoch, data set, N, settings): it
 * shuffles units over all shards, cuts them into blocks of about equal frames,
 * deals each block's units to N shares balanced by frames, and cuts a share
 * into mini-batches. All ranks compute the same plan, so nothing is
 * communicated, and a position is two integers. The union of the shares of an
 * epoch is the data set, exactly once, for any N; it knows nothing of ranks.
 */
#ifndef BM_IO_BATCH_PLAN_H
#define BM_IO_BATCH_PLAN_H

#include "io/shard/dataset.h"

/* A block of a run; enough to go on after a restart. */
typedef struct bm_position {
    int64_t epoch;
    int64_t block;
} bm_position;

/* Of the sequences in an epoch. */
typedef enum bm_order {
    BM_ORDER_RANDOM,
    BM_ORDER_SORTED, /* short ones first */
    BM_ORDER_FILE    /* as in the shards */
} bm_order;

/* From [batch] (io/batch/batch_settings.h) and the size in [block]
 * (bmuf/block_settings.h). */
typedef struct bm_plan_settings {
    long sequences; /* of a mini-batch; 0: by frames */
    long frames;    /* of a mini-batch at most, padding included; 0: by
                       sequences, or, if that is 0, by 16 of mean length */
    bm_order order;
    long buckets; /* a share in random order is sorted by length in runs of so
                     many mini-batches, then these are shuffled */
    long frames_per_worker, frames_total, steps; /* of a block: one is set */
} bm_plan_settings;

/* Frames of the largest mini-batch; 0: they are counted in sequences. */
long bm_plan_batch_frames(const bm_plan_settings *s, const bm_dataset *d);

/*
 * Frames of a block, all workers together, before evening out. Counted in
 * steps, a block is that many mini-batches per worker of the data set's mean
 * size: of sequences times the mean length, or as full as shares of that size
 * are found to be.
 */
BM_CHECKED bm_status bm_plan_block_frames(const bm_plan_settings *s,
                                          const bm_dataset *d, int workers,
                                          double *out);

typedef struct bm_plan bm_plan;

/* The plan of an epoch. Everything is borrowed. Settings as bm_plan_read leaves
 * them: one size of a block, and at most one of a mini-batch. */
BM_CHECKED bm_status bm_plan_new(bm_plan **out, const bm_dataset *d,
                                 const bm_plan_settings *s, int workers,
                                 uint64_t seed, int64_t epoch);
void bm_plan_free(bm_plan *p);

/* The same in every epoch; 0 if there are no sequences. */
int64_t bm_plan_blocks(const bm_plan *p);

/* The units of a worker's share, numbers in the data set; borrowed. */
size_t bm_plan_units(const bm_plan *p, int64_t block, int worker,
                     const size_t **units);

/* Mean by largest frames of the shares of a block, which is the part of the
 * time that workers of equal speed are busy: 1 if all shares are equal, little
 * where units are large for a share. */
double bm_plan_balance(const bm_plan *p, int64_t block);

/*
 * The mini-batches of a share: sequences end to end in *sequences (numbers in
 * the data set), and where each mini-batch ends in *ends. Owned by `cut`, which
 * starts as {0}, is reused and freed with bm_cut_free.
 */
typedef struct bm_cut {
    size_t n_batches, n_sequences;
    int64_t *sequences; /* [n_sequences] */
    size_t *ends;       /* [n_batches] */
    size_t room_sequences, room_ends;
} bm_cut;

BM_CHECKED bm_status bm_plan_cut(const bm_plan *p, int64_t block, int worker,
                                 bm_cut *cut);
void bm_cut_free(bm_cut *cut);

/* Mini-batches of the longest share of a block; 0 if there is no such block. */
BM_CHECKED bm_status bm_plan_steps(const bm_plan *p, int64_t block,
                                   int64_t *steps);

/* Of all workers' mini-batches of a block. */
typedef struct bm_filling {
    double batches;
    double frames; /* of sequences */
    double padded; /* the same with the padding */
} bm_filling;

/* Adds a block's to *sum. */
BM_CHECKED bm_status bm_plan_fill(const bm_plan *p, int64_t block,
                                  bm_filling *sum);

#endif
