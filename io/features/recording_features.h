/*
 * recording_features.h - features of a recording: dither, then the filter bank,
 * with the settings that `[features]` has for recordings. The chain of
 * feature_chain.h follows.
 */
#ifndef BM_IO_FEATURES_RECORDING_FEATURES_H
#define BM_IO_FEATURES_RECORDING_FEATURES_H

#include "core/config.h"
#include "io/features/fbank.h"
#include "io/features/feature_chain.h"

typedef struct bm_recording_settings {
    long rate, mels, channel, seed;
    double window_ms, shift_ms;
    const char *window;
    double preemphasis, dither, low_hz, high_hz;
    bool snip_edges;
    bm_chain_settings chain;
} bm_recording_settings;

extern const bm_option bm_recording_options[];

/* The filter bank for s->rate > 0, and sets s->high_hz to what it means. Fails
 * as bm_fbank_new does. Free with bm_fbank_free. */
BM_CHECKED bm_status bm_recording_bank(bm_fbank **out,
                                       bm_recording_settings *s);

/* Seconds between the frames that the chain leaves. */
double bm_recording_shift(const bm_recording_settings *s);

/* The frames of x [n], in the range of 16-bit samples; out->n = 0 if there are
 * less than a window. Dither is added to x, the same for equal ids. Fails with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_recording_frames(bm_fbank *bank,
                                         const bm_recording_settings *s,
                                         const char *id, float *x, size_t n,
                                         bm_frames *out);

#endif
