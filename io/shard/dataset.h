/*
 * dataset.h - all shards of a directory as one list of sequences and units.
 *
 * Sequences are numbered through all shards in the order of their file names;
 * units likewise. Opening reads lengths and unit tables, never features.
 */
#ifndef BM_IO_SHARD_DATASET_H
#define BM_IO_SHARD_DATASET_H

#include "io/shard/shard.h"

typedef struct bm_unit_at {
    int32_t shard;
    int32_t unit;  /* in the shard */
    int64_t first; /* its first sequence in the data set */
    int32_t sequences;
    int64_t frames;
} bm_unit_at;

/* Read only. The shards' vocabularies and dimensions are equal. */
typedef struct bm_dataset {
    char *directory;
    size_t n_shards;
    char **paths;      /* [n_shards] */
    bm_shard **shards; /* [n_shards]; for one thread at a time */
    size_t n_units;
    bm_unit_at *units;        /* [n_units] */
    size_t n;                 /* sequences */
    int32_t *lengths;         /* [n, 2]: frames and labels of each */
    int64_t frames, labels;   /* sums */
    int32_t longest;          /* frames of the longest sequence */
    size_t features, classes; /* D, C */
    uint64_t hash;            /* of the shards' hashes, in order */
} bm_dataset;

/* All *.bmuf.h5 of a directory, or one of them alone. Everything that is wrong
 * with any of them is told together. */
BM_CHECKED bm_status bm_dataset_open(bm_dataset **out, const char *path);
void bm_dataset_close(bm_dataset *d);

const bm_vocab *bm_dataset_vocab(const bm_dataset *d);
/* The name of a sequence, borrowed. */
BM_CHECKED bm_status bm_dataset_tag(bm_dataset *d, int64_t sequence,
                                    const char **out);
/* Reads a unit, by its number in the data set. */
BM_CHECKED bm_status bm_dataset_read(bm_dataset *d, size_t unit,
                                     bm_sequences *out);

#endif
