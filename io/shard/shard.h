/*
 * shard.h - one HDF5 file of sequences, in units: runs of consecutive sequences
 * that are read together, with one H5Dread for their features and one for their
 * labels. The layout is that of docs/shards.md; RETURNN reads it as well.
 *
 * A shard is not trusted: sizes are checked before anything is allocated,
 * external links, virtual data sets and variable-length types are refused, and
 * a unit's checksums are verified when it is read.
 */
#ifndef BM_IO_SHARD_SHARD_H
#define BM_IO_SHARD_SHARD_H

#include "compute/batch.h"
#include "core/config.h"
#include "core/status.h"
#include "io/shard/store.h"
#include "io/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bm_shard bm_shard;

typedef struct bm_unit_size {
    size_t first;                     /* its first sequence in the shard */
    size_t sequences, frames, labels; /* how many of each */
} bm_unit_size;

/* Some sequences, owned by the caller and reused from read to read. Start with
 * {0}; free with bm_sequences_free. */
typedef struct bm_sequences {
    size_t n;
    size_t features;  /* D */
    float *x;         /* all frames end to end: [sum of frames, D] */
    int32_t *frames;  /* [n] */
    int32_t *targets; /* all labels end to end */
    int32_t *labels;  /* [n] */
    size_t room_x, room_targets, room_n;
    bool packed; /* x is to hold them as they are stored, end to end */
} bm_sequences;

/* Makes room for so many of each; what was there is kept. Sets `features`. */
BM_CHECKED bm_status bm_sequences_reserve(bm_sequences *s, size_t n,
                                          size_t frames, size_t labels,
                                          size_t features);
void bm_sequences_free(bm_sequences *s);

BM_CHECKED bm_status bm_shard_open(bm_shard **out, const char *path);
void bm_shard_close(bm_shard *s);

size_t bm_shard_features(const bm_shard *s);  /* D: floats per frame */
size_t bm_shard_classes(const bm_shard *s);   /* with the blank, class 0 */
size_t bm_shard_sequences(const bm_shard *s); /* N */
size_t bm_shard_units(const bm_shard *s);
bm_store bm_shard_store(const bm_shard *s);
bm_stored bm_shard_stored(const bm_shard *s); /* all of one but x */
bm_unit_size bm_shard_unit(const bm_shard *s, size_t unit);
bool bm_shard_per_frame(const bm_shard *s);     /* a class for every frame */
double bm_shard_frame_shift(const bm_shard *s); /* seconds; 0: not sound */

/* [N, 2]: frames and labels of every sequence. Borrowed. */
const int32_t *bm_shard_lengths(const bm_shard *s);

/* The symbols of its classes, borrowed; the text of how features were made
 * ("" if unknown); XXH3-64 of everything that describes the shard's contents:
 * lengths, units, checksums. */
const bm_vocab *bm_shard_vocab(const bm_shard *s);
const char *bm_shard_features_text(const bm_shard *s);
uint64_t bm_shard_hash(const bm_shard *s);

/* A sequence's name, borrowed until the shard is closed. Read when first asked
 * for, all at once. */
BM_CHECKED bm_status bm_shard_tag(bm_shard *s, size_t sequence,
                                  const char **out);

/* All of a unit, with one H5Dread for the features and one for the labels. */
BM_CHECKED bm_status bm_shard_read(bm_shard *s, size_t unit, bm_sequences *out);

/* ---- writing ---------------------------------------------------------- */

/* [shard] of bmuf pack */
typedef struct bm_shard_settings {
    long unit_frames;  /* a unit ends with the sequence that reaches these */
    double shard_mb;   /* a shard ends with the unit that reaches these */
    const char *store; /* f32, f16, u8 */
} bm_shard_settings;

extern const bm_option bm_shard_options[];

/* Writes data/<name>-00000.bmuf.h5, -00001 ..; each under a temporary name
 * until it is whole, checked by reading it back, then renamed. */
typedef struct bm_shard_writer bm_shard_writer;

/* `vocab` is borrowed; `features_text` says how features were made (JSON).
 * quant_scale, quant_offset: value = offset + scale * stored, for u8. */
typedef struct bm_shard_meta {
    size_t features;
    const bm_vocab *vocab;
    const char *features_text;
    double frame_shift; /* seconds; 0: not sound */
    bool per_frame;     /* a class for every frame, else label sequences */
    double quant_scale, quant_offset;
} bm_shard_meta;

#define BM_SHARD_SUFFIX ".bmuf.h5"
enum { BM_LONGEST_TAG = 255 }; /* bytes of a sequence's name */

BM_CHECKED bm_status bm_shard_writer_open(bm_shard_writer **out,
                                          const char *directory,
                                          const char *name,
                                          const bm_shard_settings *settings,
                                          const bm_shard_meta *meta);

/* x [frames, D], labels [n_labels], both free again on return. BM_ERR_FORMAT: a
 * label out of range, or a value that does not fit; the sequence is left out
 * and the next may be added. A speaker who is not known is NULL or "". */
BM_CHECKED bm_status bm_shard_writer_add(bm_shard_writer *w, const char *tag,
                                         const char *speaker, const float *x,
                                         size_t frames, const int32_t *labels,
                                         size_t n_labels);

/* Completes the last shard; *shards is how many there are. After a failure
 * bm_shard_writer_close removes what is unfinished. */
BM_CHECKED bm_status bm_shard_writer_finish(bm_shard_writer *w, size_t *shards);
void bm_shard_writer_close(bm_shard_writer *w);

#endif
