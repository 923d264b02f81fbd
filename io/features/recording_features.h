/*
 * recording_features.h - features of a recording: the filter bank of the
 * recording with dither, or its cepstra, then the pitch without, with the
 * settings that `[features]` has for recordings. The chain of feature_chain.h
 * follows.
 */
#ifndef BM_IO_FEATURES_RECORDING_FEATURES_H
#define BM_IO_FEATURES_RECORDING_FEATURES_H

#include "core/config/config.h"
#include "io/features/feature_chain.h"

enum { BM_MOST_HZ = 384000 };

typedef struct bm_recording_settings {
    long rate, mels, channel, seed;
    long cepstra; /* 0: the bands */
    double window_ms, shift_ms;
    const char *window;
    double preemphasis, dither, low_hz, high_hz;
    bool snip_edges, energy, pitch;
    bm_chain_settings chain;
} bm_recording_settings;

extern const bm_option bm_recording_options[];

/* What makes the columns of a frame: the bands or cepstra, then the pitch. */
typedef struct bm_recording_bank bm_recording_bank;

/* For s->rate > 0; sets s->high_hz to what it means. Fails with BM_ERR_CONFIG,
 * naming a key of [features], if settings are invalid, or with BM_ERR_MEMORY.
 * Free with bm_recording_bank_free; NULL is a no-op. */
BM_CHECKED bm_status bm_recording_bank_new(bm_recording_bank **out,
                                           bm_recording_settings *s);
void bm_recording_bank_free(bm_recording_bank *b);

/* The number of frames that `samples` give; 0 for too few. */
size_t bm_recording_bank_frames(const bm_recording_bank *b, size_t samples);

size_t bm_recording_columns(const bm_recording_settings *s); /* of a frame */

/* Seconds between the frames that the chain leaves, for s->rate > 0. */
double bm_recording_shift(const bm_recording_settings *s);

/* The frames of x [n], in the range of 16-bit samples; out->n = 0 if there are
 * less than a window. Dither is added to x, the same for equal ids. Fails with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_recording_frames(bm_recording_bank *bank,
                                         const bm_recording_settings *s,
                                         const char *id, float *x, size_t n,
                                         bm_frames *out);

#endif
