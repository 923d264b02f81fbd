/*
 * fbank.h - log-mel filter-bank features, as Kaldi defines them
 * (feat/feature-window, mel-computations, feature-fbank). The steps for each
 * window of samples, in this order:
 *
 *     subtract the mean; x[i] -= p x[i-1] for falling i, x[0] -= p x[0];
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
    double low_hz, high_hz; /* high_hz <= 0: added to half the rate */
    bool snip_edges; /* whole windows only; no: the edges are reflected */
} bm_fbank_settings;

/* Fails with BM_ERR_CONFIG, naming a key of [features], if a setting is invalid
 * or a band has no frequency. *s is copied. Free with bm_fbank_free; NULL is a
 * no-op. */
BM_CHECKED bm_status bm_fbank_new(bm_fbank **out, const bm_fbank_settings *s);
void bm_fbank_free(bm_fbank *f);

/* The number of frames that `samples` give; 0 for too few. */
size_t bm_fbank_frames(const bm_fbank *f, size_t samples);

size_t bm_fbank_shift(const bm_fbank *f); /* samples between frames */

/* x [n], in the range of 16-bit samples -> the first `mels` columns of
 * y [bm_fbank_frames(f, n), stride]. One thread at a time: f has the scratch
 * memory. */
void bm_fbank_apply(bm_fbank *f, const float *x, size_t n, float *y,
                    size_t stride);

/* x [n] -> the first column of y [bm_fbank_frames(f, n), stride]: ln(max(sum of
 * squares, 2^-23)) of each window less its mean, before pre-emphasis. */
void bm_fbank_energies(bm_fbank *f, const float *x, size_t n, float *y,
                       size_t stride);

/* Adds Gaussian noise with standard deviation `amount`. Sample i of `key` gets
 * the same noise in every call. */
void bm_dither(float *x, size_t n, double amount, uint64_t key);

#endif
