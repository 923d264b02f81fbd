/*
 * feature_chain.h - what becomes of the frames of one sequence after they are
 * made: deltas, then normalisation, then stacking, then subsampling.
 *
 * Normalisation over one speaker's sequences, or over all of them, needs the
 * moments of all first: where bm_chain_learns, every sequence goes through
 * bm_chain_learn before the first bm_chain_apply.
 */
#ifndef BM_IO_FEATURES_FEATURE_CHAIN_H
#define BM_IO_FEATURES_FEATURE_CHAIN_H

#include "core/config.h"
#include "io/features/feature_ops.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct bm_chain bm_chain;

typedef struct bm_chain_settings {
    long deltas, delta_window, stack, subsample;
    const char *normalise; /* none, utterance, speaker, global */
    bool variance;
} bm_chain_settings;

/* Rows for the table of a struct that has them as member `chain`. */
#define BM_CHAIN_ROW(owner, key, type, fallback, min, max, unit, help)         \
    {                                                                          \
#key, type, offsetof(owner, chain.key), fallback, min, max, unit, help \
    }
#define BM_CHAIN_OPTIONS(owner)                                                \
    BM_CHAIN_ROW(owner, deltas, BM_INT, "0", 0, BM_DELTA_ORDER, NULL,          \
                 "add slopes over time (1), and slopes of slopes (2)"),        \
        BM_CHAIN_ROW(owner, delta_window, BM_INT, "2", 1, BM_DELTA_WINDOW,     \
                     "frames", "a slope is taken over so many on each side"),  \
        BM_CHAIN_ROW(owner, stack, BM_INT, "1", 1, 64, "frames",               \
                     "this many are put side by side into one"),               \
        BM_CHAIN_ROW(owner, subsample, BM_INT, "1", 1, 64, "frames",           \
                     "keep the first of every so many"),                       \
        BM_CHAIN_ROW(owner, normalise, BM_CHOICE, "utterance", 0, 0,           \
                     "none utterance speaker global",                          \
                     "over what to bring to mean 0"),                          \
        BM_CHAIN_ROW(owner, variance, BM_FLAG, "yes", 0, 0, NULL,              \
                     "normalise to variance 1 as well")

/* Frames in memory that is reused. Start with {0}. */
typedef struct bm_frames {
    float *x; /* [n, dim] */
    size_t n, dim;
    size_t room; /* floats */
} bm_frames;

/* Gives it this shape; what was in it is lost. */
BM_CHECKED bm_status bm_frames_shape(bm_frames *f, size_t n, size_t dim);
void bm_frames_free(bm_frames *f);

/* For frames of dim features of so many speakers. `section` is where the
 * settings are from, for BM_ERR_CONFIG. Free with bm_chain_free. */
BM_CHECKED bm_status bm_chain_new(bm_chain **out, const bm_chain_settings *s,
                                  const char *section, size_t dim,
                                  size_t speakers);
void bm_chain_free(bm_chain *c);

size_t bm_chain_features(const bm_chain *c); /* of what comes out */
bool bm_chain_learns(const bm_chain *c);
bool bm_chain_needs_speakers(const bm_chain *c);

/* x [T >= 1, dim] of this speaker. */
BM_CHECKED bm_status bm_chain_learn(bm_chain *c, size_t speaker,
                                    const bm_frames *x);

/* The same x -> *out, borrowed until the next call. */
BM_CHECKED bm_status bm_chain_apply(bm_chain *c, size_t speaker,
                                    const bm_frames *x, const bm_frames **out);

#endif
