/*
 * feature_chain.h - processing of one sequence's frames: deltas, then
 * normalisation, then stacking, then subsampling.
 *
 * Normalisation by speaker, or over all sequences, needs moments first: if
 * bm_chain_learns is true, pass every sequence to bm_chain_learn before the
 * first bm_chain_apply. Normalisation by Kaldi's statistics comes before the
 * deltas, as in Kaldi; bm_chain_take gets them, of each speaker. It also gets
 * moments by speaker that another chain has learned.
 */
#ifndef BM_IO_FEATURES_FEATURE_CHAIN_H
#define BM_IO_FEATURES_FEATURE_CHAIN_H

#include "core/config/config.h"
#include "io/features/feature_ops.h"
#include "io/features/feature_text.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct bm_chain bm_chain;

typedef struct bm_chain_settings {
    long deltas, delta_window, stack, subsample;
    const char
        *normalise; /* none, utterance, speaker, global, sliding, kaldi */
    bool variance;
    long sliding; /* frames of a window */
} bm_chain_settings;

/* Rows of an option table, for a struct `owner` with these settings as member
 * `chain`. */
#define BM_CHAIN_ROW(owner, key, type, fallback, min, max, unit, help)         \
    {                                                                          \
#key, type, offsetof(owner, chain.key), fallback, min, max, unit, help \
    }
#define BM_CHAIN_OPTIONS(owner)                                                \
    BM_CHAIN_ROW(owner, deltas, BM_INT, "0", 0, BM_DELTA_ORDER, NULL,          \
                 "1: add slopes over time; 2: and slopes of slopes"),          \
        BM_CHAIN_ROW(owner, delta_window, BM_INT, "2", 1, BM_DELTA_WINDOW,     \
                     "frames", "frames on each side for a slope"),             \
        BM_CHAIN_ROW(owner, stack, BM_INT, "1", 1, 64, "frames",               \
                     "number of frames put side by side into one: a frame "    \
                     "and those after it"),                                    \
        BM_CHAIN_ROW(owner, subsample, BM_INT, "1", 1, 64, "frames",           \
                     "keep the first of this many"),                           \
        BM_CHAIN_ROW(owner, normalise, BM_CHOICE, "utterance", 0, 0,           \
                     "none utterance speaker global sliding kaldi",            \
                     "over what features are normalised to mean 0; sliding: "  \
                     "a window around each frame; kaldi: by cmvn.scp"),        \
        BM_CHAIN_ROW(owner, variance, BM_FLAG, "yes", 0, 0, NULL,              \
                     "normalise to variance 1 as well"),                       \
        BM_CHAIN_ROW(owner, sliding, BM_INT, "600", 2, 1e6, "frames",          \
                     "window of normalise = sliding")

/* Frames in memory that is reused. Starts as {0}; free with bm_frames_free. */
typedef struct bm_frames {
    float *x; /* [n, dim] */
    size_t n, dim;
    size_t room; /* floats */
} bm_frames;

/* Sets the shape; the contents are lost. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_frames_shape(bm_frames *f, size_t n, size_t dim);
void bm_frames_free(bm_frames *f);

/* For frames of `dim` features, of `speakers` speakers. Settings are copied.
 * Fails with BM_ERR_CONFIG, naming `section`, if a setting is invalid, or with
 * BM_ERR_MEMORY. Free with bm_chain_free; NULL is a no-op. */
BM_CHECKED bm_status bm_chain_new(bm_chain **out, const bm_chain_settings *s,
                                  const char *section, size_t dim,
                                  size_t speakers);
/* A chain that applies the same, for another thread; c has learned all. Fails
 * with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_chain_copy(bm_chain **out, const bm_chain *c);
void bm_chain_free(bm_chain *c);

size_t bm_chain_features(const bm_chain *c); /* per frame of the output */
bool bm_chain_learns(const bm_chain *c);
bool bm_chain_needs_speakers(const bm_chain *c);
bool bm_chain_needs_statistics(const bm_chain *c); /* by bm_chain_take */

/* The moments of a speaker, in [0, speakers), count > 0, as of
 * bm_chain_moments_of. Copied. */
void bm_chain_take(bm_chain *c, size_t speaker, const double *moments);

/* The moments [*n] of a speaker, in [0, speakers): those of the features with their
 * deltas, or without them by Kaldi's statistics. Borrowed. NULL, and 0, where
 * normalisation needs no speakers. */
const double *bm_chain_moments_of(const bm_chain *c, size_t speaker, size_t *n);

/* Adds x [T >= 1, dim] to the moments of a speaker, in [0, speakers). Fails
 * with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_chain_learn(bm_chain *c, size_t speaker,
                                    const bm_frames *x);

/* All moments that were learned, [*n], to be given to the same chain of another
 * rank. Owned by the chain. */
double *bm_chain_moments(bm_chain *c, size_t *n);

/* Normalisation over all sequences then takes these numbers, and learns
 * nothing; any other ignores them, and norm->dim = 0 is a no-op. Copied. Fails
 * with BM_ERR_CONFIG, naming `section`, if it is of another number of features,
 * or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_chain_give(bm_chain *c, const char *section,
                                   const bm_cmvn *norm);

/* What all sequences are normalised by, once they are learned or given: borrowed;
 * dim = 0 unless it is the same for all. Fails with BM_ERR_FORMAT if a sequence
 * was not finite, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_chain_norm(bm_chain *c, const bm_cmvn **out);

/* Processes x [T >= 1, dim]. *out is borrowed until the next call. Fails with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_chain_apply(bm_chain *c, size_t speaker,
                                    const bm_frames *x, const bm_frames **out);

#endif
