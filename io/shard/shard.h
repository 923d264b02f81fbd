/*
 * shard.h - one HDF5 file of sequences, in units. A unit is a run of
 * consecutive sequences that are read together, with one H5Dread for their
 * features and one for their labels. docs/data/shards.md has the layout; RETURNN
 * reads it as well.
 *
 * Reading does not trust a shard: sizes are checked before memory is allocated,
 * external links, virtual data sets and variable-length types are rejected, and
 * checksums are verified when a unit is read. Reading fails with BM_ERR_MISSING
 * if the file cannot be opened, BM_ERR_FORMAT if it is damaged, not a shard or
 * was replaced since it was opened, and BM_ERR_MEMORY.
 *
 * A bm_shard is for one thread at a time.
 */
#ifndef BM_IO_SHARD_SHARD_H
#define BM_IO_SHARD_SHARD_H

#include "compute/batch.h"
#include "core/config/config.h"
#include "core/status.h"
#include "io/shard/store.h"
#include "io/vocab.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bm_shard bm_shard;

/* Where a shard belongs in its data set. */
typedef struct bm_shard_place {
    int64_t index;   /* from 0; -1: unknown */
    int64_t count;   /* of all shards, in the last one; 0 in the others; -1:
                        unknown, in older shards */
    int64_t first;   /* sequences in the shards before it */
    uint64_t before; /* bm_shard_chain of the shards before it */
} bm_shard_place;

typedef struct bm_unit_size {
    size_t first;                     /* its first sequence in the shard */
    size_t sequences, frames, labels; /* how many of each */
} bm_unit_size;

/* Some sequences, owned by the caller and reused from read to read. Starts as
 * {0}; free with bm_sequences_free. */
typedef struct bm_sequences {
    size_t n;
    size_t features;  /* D */
    float *x;         /* all frames end to end: [sum of frames, D] */
    int32_t *frames;  /* [n] */
    int32_t *targets; /* all labels end to end */
    int32_t *labels;  /* [n] */
    size_t room_x, room_targets, room_n;
    bool packed; /* set by the caller: keep x as stored, do not convert */
} bm_sequences;

/* Makes room for these numbers of each and keeps the contents. Sets `features`.
 * Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_sequences_reserve(bm_sequences *s, size_t n,
                                          size_t frames, size_t labels,
                                          size_t features);
void bm_sequences_free(bm_sequences *s);

/* The samples of a recording, of 16 bits, and the moments that its features were
 * normalised by if they are those of a speaker. Owned by the caller and reused from
 * read to read. Starts as {0}; free with bm_waveform_free. */
typedef struct bm_waveform {
    int16_t *x; /* [n] */
    size_t n, room;
    double *moments;  /* [n_moments], as of bm_chain_moments_of */
    size_t n_moments; /* 0: there are none */
} bm_waveform;

/* Makes room for n samples, and sets n; contents are lost. Fails with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_waveform_shape(bm_waveform *w, size_t n);
/* Copies n moments; NULL makes room for them. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_waveform_set_moments(bm_waveform *w,
                                             const double *moments, size_t n);
/* `from` becomes empty. */
void bm_waveform_move(bm_waveform *to, bm_waveform *from);
void bm_waveform_free(bm_waveform *w);

/* Reads and checks all tables. Close with bm_shard_close; NULL is a no-op. */
BM_CHECKED bm_status bm_shard_open(bm_shard **out, const char *path);
void bm_shard_close(bm_shard *s);

size_t bm_shard_features(const bm_shard *s);  /* D: floats per frame */
size_t bm_shard_classes(const bm_shard *s);   /* blank, class 0, included */
size_t bm_shard_sequences(const bm_shard *s); /* N */
size_t bm_shard_units(const bm_shard *s);
bm_store bm_shard_store(const bm_shard *s);
bm_stored bm_shard_stored(const bm_shard *s); /* all fields except x */
bm_unit_size bm_shard_unit(const bm_shard *s, size_t unit);
bool bm_shard_per_frame(const bm_shard *s);     /* one label per frame */
double bm_shard_frame_shift(const bm_shard *s); /* seconds; 0: no audio */

/* Hz of the recordings that it keeps beside their features; 0: it keeps none.
 * And their samples, of all sequences. */
long bm_shard_sample_rate(const bm_shard *s);
uint64_t bm_shard_samples(const bm_shard *s);
size_t bm_shard_moments(const bm_shard *s); /* with each recording */

/* [N, 2]: frames and labels of every sequence. Borrowed. */
const int32_t *bm_shard_lengths(const bm_shard *s);

/* Whether a sequence has a reference, if only an empty one. Shards of older
 * versions do not tell these from none. */
bool bm_shard_has_reference(const bm_shard *s, size_t sequence);

/* The symbols of its classes; borrowed. */
const bm_vocab *bm_shard_vocab(const bm_shard *s);

/* How the features were made, as JSON; "" if unknown. Borrowed. */
const char *bm_shard_features_text(const bm_shard *s);

/* How its texts were normalised, "nfc" or "none"; NULL if unknown. Static. */
const char *bm_shard_text_form(const bm_shard *s);

/* XXH3-64 of everything that identifies the contents: lengths, units,
 * checksums, names, vocabulary, features text. */
uint64_t bm_shard_hash(const bm_shard *s);

/* Its place in its data set, and the place of the shard that follows it. */
bm_shard_place bm_shard_place_of(const bm_shard *s);
bm_shard_place bm_shard_place_after(const bm_shard *s);

/* The name of a sequence, borrowed until the shard is closed. The first call
 * reads all names. */
BM_CHECKED bm_status bm_shard_tag(bm_shard *s, size_t sequence,
                                  const char **out);

/* The speaker or writer of a sequence, "" if unknown; borrowed until the shard is
 * closed. The first call reads all of them. */
BM_CHECKED bm_status bm_shard_speaker(bm_shard *s, size_t sequence,
                                      const char **out);

/* Reads a unit and verifies its checksums and the range of its labels. _labels:
 * without its frames, x, and their checksum. */
BM_CHECKED bm_status bm_shard_read(bm_shard *s, size_t unit, bm_sequences *out);
BM_CHECKED bm_status bm_shard_read_labels(bm_shard *s, size_t unit,
                                          bm_sequences *out);

/* Reads the recording of a sequence and verifies its checksum. The shard keeps
 * recordings. */
BM_CHECKED bm_status bm_shard_read_waveform(bm_shard *s, size_t sequence,
                                            bm_waveform *out);

/* ---- writing ---------------------------------------------------------- */

/* [shard] of bmuf pack */
typedef struct bm_shard_settings {
    long unit_frames;  /* a unit ends once it has this many frames */
    double shard_mb;   /* a shard ends once it has this many MB */
    const char *store; /* f32, f16, u8 */
    bool samples;      /* the importer gives samples, which are kept */
} bm_shard_settings;

extern const bm_option bm_shard_options[];

/* Writes <directory>/<name>-00000.bmuf.h5, -00001 .. Each file has a temporary
 * name until it is complete, is read back as a check, then renamed. Only the
 * last one has the number of shards: without it the data set is not whole. */
typedef struct bm_shard_writer bm_shard_writer;

/* What all sequences of a writer have in common. */
typedef struct bm_shard_meta {
    size_t features;
    const bm_vocab *vocab;     /* borrowed */
    const char *features_text; /* how features were made, as JSON; copied */
    const char *text_form;     /* "nfc", "none"; NULL: unknown; static */
    double frame_shift;        /* seconds; 0: no audio */
    long sample_rate;          /* Hz of the samples that are kept; 0: none */
    size_t moments;            /* that are kept with the samples of each */
    bool per_frame;            /* one label per frame, else label sequences */
    double quant_scale, quant_offset; /* u8: value = offset + scale stored */
} bm_shard_meta;

#define BM_SHARD_SUFFIX ".bmuf.h5"
enum { BM_LONGEST_TAG = 255 }; /* bytes of the name of a sequence or speaker */
enum { BM_LONGEST_FEATURES_TEXT = 60000 };
enum { BM_MOST_FEATURES = 1 << 20 }; /* of a frame */
enum { BM_LONGEST_SYMBOL = 4095 };   /* bytes */

/* Creates `directory` if it is missing. Fails with BM_ERR_CONFIG for a store
 * that does not suit the features or a features_text that is too long, with
 * BM_ERR_CREATE if the directory cannot be created or already has shards of this
 * name. Close with bm_shard_writer_close. */
BM_CHECKED bm_status bm_shard_writer_open(bm_shard_writer **out,
                                          const char *directory,
                                          const char *name,
                                          const bm_shard_settings *settings,
                                          const bm_shard_meta *meta);

/* The same after shards of an earlier writer with the same arguments: at this
 * place, which follows them. A shard that is there already is replaced once the
 * new one is complete; of the earlier ones closing removes none. */
BM_CHECKED bm_status bm_shard_writer_resume(bm_shard_writer **out,
                                            const char *directory,
                                            const char *name,
                                            const bm_shard_settings *settings,
                                            const bm_shard_meta *meta,
                                            const bm_shard_place *place);

/* Adds a sequence: x [frames, D], labels [n_labels], copied. labels: NULL, with
 * n_labels = 0, if there is no reference; else no labels mean that nothing is
 * spoken. speaker: NULL or
 * "" if unknown. Fails with BM_ERR_FORMAT for a label out of range, an invalid
 * tag or length, or a value that the store cannot hold; the sequence is then
 * skipped and the next may be added. Other failures (BM_ERR_IO, BM_ERR_CREATE,
 * BM_ERR_MEMORY) are final. */
BM_CHECKED bm_status bm_shard_writer_add(bm_shard_writer *w, const char *tag,
                                         const char *speaker, const float *x,
                                         size_t frames, const int32_t *labels,
                                         size_t n_labels);

/* The same with the samples that the features were made of, and as many moments as
 * the meta data say, copied. The meta data have a sample_rate. */
BM_CHECKED bm_status bm_shard_writer_add_recording(
    bm_shard_writer *w, const char *tag, const char *speaker, const float *x,
    size_t frames, const int32_t *labels, size_t n_labels,
    const bm_waveform *recording);

/* Writes the last shard. *shards: the number of shards written. */
BM_CHECKED bm_status bm_shard_writer_finish(bm_shard_writer *w, size_t *shards);

/*
 * Several processes may write the shards of one data set: each fills a writer of
 * its own with one shard of any size, and finishes it once it knows the place,
 * {0} for the first. The shards must be written in order. *place: becomes that of
 * the next shard; `last`: there is none.
 */
BM_CHECKED bm_status bm_shard_part_open(bm_shard_writer **out,
                                        const char *directory, const char *name,
                                        const bm_shard_settings *settings,
                                        const bm_shard_meta *meta);
/* Precondition: there is a sequence. Replaces a file of this name. */
BM_CHECKED bm_status bm_shard_part_finish(bm_shard_writer *w, bool last,
                                          bm_shard_place *place);

/* Is a file of a directory NAME-00000.bmuf.h5, ..? */
bool bm_shard_is_named(const char *file, const char *name);

/* The path of a shard of a data set. Fails with BM_ERR_CREATE if it is too
 * long. */
BM_CHECKED bm_status bm_shard_path(char path[PATH_MAX], const char *directory,
                                   const char *name, int64_t index);

/* Frees the writer; unless it has finished, its shards are removed. NULL is a
 * no-op. */
void bm_shard_writer_close(bm_shard_writer *w);

#endif
