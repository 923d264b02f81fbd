/*
 * shard_parts.h - an open shard from the inside, for reading, writing and
 * checking. docs/data/shards.md has the layout.
 */
#ifndef BM_IO_SHARD_SHARD_PARTS_H
#define BM_IO_SHARD_SHARD_PARTS_H

#include "io/shard/h5.h"
#include "io/shard/shard.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <xxhash.h>

enum { BM_SHARD_VERSION = 1, BM_DIGEST_LENGTH = 32 };

/* Columns of /bmuf/block, the table of units. */
enum {
    BM_UNIT_SEQUENCE, /* number of the first */
    BM_UNIT_SEQUENCES,
    BM_UNIT_FRAME,
    BM_UNIT_FRAMES,
    BM_UNIT_LABEL,
    BM_UNIT_LABELS,
    BM_UNIT_COLUMNS
};

/* The tables of a shard, in memory while it is open or until it is written. */
typedef struct bm_shard_tables {
    size_t features, classes, n, units;
    bm_store store;
    int32_t *lengths;      /* [n, 2] */
    uint64_t *unit;        /* [units, BM_UNIT_COLUMNS] */
    uint32_t *crc;         /* [units, 2]: of frames, of labels */
    float *scale, *offset; /* [features], u8 only */
} bm_shard_tables;

/* Where the samples of each sequence are; with rate = 0 nothing. */
typedef struct bm_sample_tables {
    int64_t rate;          /* Hz */
    uint64_t *offset;      /* [n + 1] */
    uint32_t *crc;         /* [n] */
    int64_t moments;       /* of each sequence; 0: none */
    uint32_t *moments_crc; /* [n], with moments */
} bm_sample_tables;

enum { BM_SHARD_MOST = 100000000 }; /* shards of a data set */

/* The hash of a list of shards, of that of all but the last, 0 for none, and
 * the last one's bm_shard_hash. */
static inline uint64_t bm_shard_chain(uint64_t before, uint64_t hash)
{
    const uint64_t pair[] = {before, hash};

    return XXH3_64bits(pair, sizeof pair);
}

struct bm_shard {
    char *path;
    bm_shard_place place;
    const char *text_form; /* static; NULL: unknown */
    struct stat identity;  /* of the file that was opened */
    bm_shard_tables t;
    bm_sample_tables samples;
    bool per_frame;
    double frame_shift;
    uint64_t hash;
    uint8_t *reference; /* [t.n]: is there one? NULL: where there are labels */
    bm_vocab *vocab;
    char *features_text, *tags_digest;
    char *tags; /* [n, tag_width]; NULL: not yet read */
    size_t tag_width;
    int32_t *speaker; /* [t.n]: numbers of names, -1: unknown; NULL: no table */
    char *speakers;   /* names, each with speaker_width bytes */
    size_t speaker_width;
    bool speakers_read;
    bool is_open; /* file, inputs and targets are open */
    bm_h5_file file;
    bm_h5_array inputs, targets, waveforms, moments;
};

/* XXH3-128 as 32 hexadecimal digits. */
void bm_digest(const void *data, size_t size, char out[BM_DIGEST_LENGTH + 1]);

/* The digest of lengths, units, checksums and, for u8, scale and offset, in
 * this order. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_shard_digest(const bm_shard_tables *t,
                                     char out[BM_DIGEST_LENGTH + 1]);

/* The digest of the rate, offsets and checksums of the samples of n sequences, and
 * the checksums of their moments, in this order. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_sample_digest(const bm_sample_tables *t, size_t n,
                                      char out[BM_DIGEST_LENGTH + 1]);

/* Frees the arrays. */
void bm_shard_tables_free(bm_shard_tables *t);

/* Attributes of /bmuf that only a shard with samples has. */
#define BM_SAMPLE_RATE    "sample_rate"
#define BM_SAMPLE_DIGEST  "samples_xxh3"
#define BM_SAMPLE_MOMENTS "sample_moments" /* and only if they have moments */

/* Opens the HDF5 file if it is closed. Call between bm_h5_enter and _leave. */
BM_CHECKED bm_status bm_shard_file_open(bm_shard *s);

/* Closes the HDF5 file; the shard stays usable, and reading opens the file
 * again if it is unchanged. A directory may have more shards than a process may
 * have open files. */
void bm_shard_file_close(bm_shard *s);

/* The two halves of bm_shard_read, so that one can be read if the other is
 * damaged: features to out->x, labels to out->targets, which may be out of
 * range. Other fields of `out` are not filled in. */
BM_CHECKED bm_status bm_shard_load_features(bm_shard *s, size_t unit,
                                            bm_sequences *out);
BM_CHECKED bm_status bm_shard_load_labels(bm_shard *s, size_t unit,
                                          bm_sequences *out);

/* The name of a sequence for a message; "?" if it cannot be read. Borrowed. */
const char *bm_shard_tag_or(bm_shard *s, size_t sequence);

/* Valid labels are in [this, classes). */
int32_t bm_shard_lowest_label(const bm_shard *s);

#endif
