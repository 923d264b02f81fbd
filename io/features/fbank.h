/*
 * fbank.h - log-mel filter-bank features, as Kaldi defines them
 * (feat/feature-window, mel-computations, feature-fbank). Of every window of
 * samples, in this order:
 *
 *     subtract the mean; x[i] -= p x[i-1], from the end, x[0] -= p x[0];
 *     multiply by the window's shape; pad with zeros to a power of two;
 *     power spectrum |FFT|^2; triangles on the mel scale
 *     mel(f) = 1127 ln(1 + f / 700); ln(max(energy, 2^-23))
 */
#ifndef BM_IO_FEATURES_FBANK_H
#define BM_IO_FEATURES_FBANK_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bm_fbank bm_fbank;

typedef struct bm_fbank_settings {
    long rate; /* samples per second */
    long mels;
    double window_ms, shift_ms;
    const char *window; /* povey, hanning, hamming, blackman, rectangular */
    double preemphasis;
    double low_hz, high_hz; /* high_hz <= 0: so much below half the rate */
    bool snip_edges; /* whole windows only; else the edges are reflected */
} bm_fbank_settings;

/* BM_ERR_CONFIG, in terms of section [features], if settings cannot be met.
 * Free with bm_fbank_free (NULL is fine). */
BM_CHECKED bm_status bm_fbank_new(bm_fbank **out, const bm_fbank_settings *s);
void bm_fbank_free(bm_fbank *f);

/* Frames of so many samples; 0 if they are too few. */
size_t bm_fbank_frames(const bm_fbank *f, size_t samples);

/* x [n] in 16-bit range -> y [bm_fbank_frames(f, n), mels]. */
void bm_fbank_apply(bm_fbank *f, const float *x, size_t n, float *y);

/* Adds Gaussian noise of this deviation, a function of key and sample. */
void bm_dither(float *x, size_t n, double amount, uint64_t key);

#endif
