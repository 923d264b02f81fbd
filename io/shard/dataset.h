/*
 * dataset.h - all shards of a directory as one list of sequences and units.
 *
 * Sequences are numbered through all shards in the order of the file names, and
 * so are units. Opening reads lengths and unit tables, no features. A data set
 * is for one thread at a time.
 */
#ifndef BM_IO_SHARD_DATASET_H
#define BM_IO_SHARD_DATASET_H

#include "io/features/feature_text.h"
#include "io/shard/shard.h"

/* A unit of a shard, or a part of it. */
typedef struct bm_unit_at {
    int32_t shard;
    int32_t unit;  /* in the shard */
    int64_t first; /* its first sequence in the data set */
    int32_t sequences;
    int64_t frames, labels;
    int32_t skipped; /* sequences of the shard's unit before it */
} bm_unit_at;

/* Read-only. All shards have the same vocabulary and number of features. */
typedef struct bm_dataset {
    char *directory;
    size_t n_shards;
    char **paths;      /* [n_shards] */
    bm_shard **shards; /* [n_shards] */
    size_t n_units;
    bm_unit_at *units;        /* [n_units] */
    size_t n;                 /* sequences */
    int32_t *lengths;         /* [n, 2]: frames and labels of each */
    int64_t frames, labels;   /* sums */
    size_t unlabelled;        /* sequences without a reference */
    int32_t longest;          /* frames of the longest sequence */
    size_t features, classes; /* D, C */
    uint64_t hash;            /* of the shards' hashes, in order */
    bm_cmvn norm;             /* of bm_dataset_normalise; dim = 0: none */
} bm_dataset;

/* Opens all *.bmuf.h5 of a directory, or a single one. Fails with
 * BM_ERR_MISSING or BM_ERR_FORMAT; one message lists the faults of all shards,
 * and the shards that are missing.
 * Close with bm_dataset_close; NULL is a no-op. */
BM_CHECKED bm_status bm_dataset_open(bm_dataset **out, const char *path);
void bm_dataset_close(bm_dataset *d);

/* The vocabulary of all shards, borrowed. */
const bm_vocab *bm_dataset_vocab(const bm_dataset *d);
/* The name of a sequence, in [0, n), borrowed until the data set is closed.
 * Fails as bm_shard_tag does. */
BM_CHECKED bm_status bm_dataset_tag(bm_dataset *d, int64_t sequence,
                                    const char **out);
/* Its speaker or writer, "" if unknown, likewise. Fails as bm_shard_speaker. */
BM_CHECKED bm_status bm_dataset_speaker(bm_dataset *d, int64_t sequence,
                                        const char **out);
/* Whether a sequence, in [0, n), has a reference, as bm_shard_has_reference. */
bool bm_dataset_has_reference(const bm_dataset *d, int64_t sequence);
/* Features are from now on normalised when they are read. Copied. Fails with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_dataset_normalise(bm_dataset *d, const bm_cmvn *norm);
/* Reads the recording of a sequence, in [0, n), of a shard that keeps them. Fails
 * as bm_shard_read_waveform does. */
BM_CHECKED bm_status bm_dataset_read_waveform(bm_dataset *d, int64_t sequence,
                                              bm_waveform *out);
/* Units are from now on parts of those in the shards: each ends with the
 * sequence that reaches `frames` frames. A part is read with the whole of it,
 * which is kept until another one is read. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_dataset_cut(bm_dataset *d, int64_t frames);
/* Reads a unit, in [0, n_units). Fails as bm_shard_read does. */
BM_CHECKED bm_status bm_dataset_read(bm_dataset *d, size_t unit,
                                     bm_sequences *out);

#endif
