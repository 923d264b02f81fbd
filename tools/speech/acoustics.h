/*
 * acoustics.h - what happens to speech between mouth and microphone: another
 * sampling rate and vocal tract, a room, and noise at a level.
 */
#ifndef BM_TOOLS_SPEECH_ACOUSTICS_H
#define BM_TOOLS_SPEECH_ACOUSTICS_H

#include "core/rng.h"
#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

/* Samples in memory that is reused. Starts as {0}; free with bm_signal_free. */
typedef struct bm_signal {
    float *x; /* [n] */
    size_t n, room;
} bm_signal;

/* Sets the length; the contents are lost. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_signal_shape(bm_signal *s, size_t n);
void bm_signal_free(bm_signal *s);

double bm_signal_power(const bm_signal *s); /* mean square; 0 if empty */
void bm_signal_scale(bm_signal *s, double factor);

/* ---- sampling rate and vocal tract -------------------------------------- */

/* Band-limited interpolation: reads `step` samples for each that it writes, so
 * that all frequencies are multiplied by step * (rate written / rate read). */
typedef struct bm_resampler bm_resampler;

/* step > 0. Fails with BM_ERR_MEMORY. Free with bm_resampler_free; NULL is a
 * no-op. */
BM_CHECKED bm_status bm_resampler_new(bm_resampler **out, double step);
void bm_resampler_free(bm_resampler *r);
/* Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_resample(const bm_resampler *r, const int16_t *x,
                                 size_t n, bm_signal *y);

/* ---- a room -------------------------------------------------------------- */

/* The direct sound and a tail of Gaussian noise that falls by 60 dB in t60
 * seconds (Polack's model), `direct` dB weaker than the direct sound. */
typedef struct bm_room {
    double t60, direct;
    double rate; /* samples per second */
} bm_room;

/* Convolves with the impulse response of a room, which is drawn; the length
 * stays. t60 = 0: no-op. */
typedef struct bm_reverb bm_reverb;
BM_CHECKED bm_status bm_reverb_new(bm_reverb **out);
void bm_reverb_free(bm_reverb *r);
/* Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_reverb_apply(bm_reverb *r, const bm_room *room,
                                     bm_rng *rng, bm_signal *x);

/* ---- noise --------------------------------------------------------------- */

#define BM_NOISES(X) X(white) X(pink) X(babble) X(crowd)
/* crowd: babble and pink noise, equally strong */
typedef enum bm_noise_kind {
#define X(name) BM_NOISE_##name,
    BM_NOISES(X)
#undef X
        BM_NOISE_KINDS
} bm_noise_kind;

const char *bm_noise_name(bm_noise_kind kind);

/* Tables of white and pink noise, and the last minute of speech, of which
 * babble is made: several stretches of it at once. */
typedef struct bm_noise bm_noise;

/* rate: samples per second. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_noise_new(bm_noise **out, double rate, bm_rng *rng);
void bm_noise_free(bm_noise *n);

/* Remembers speech for babble. */
void bm_noise_remember(bm_noise *n, const bm_signal *speech);

/* out <- as long as `speech`, and `snr` dB weaker. Precondition for babble:
 * there is speech. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_noise_make(bm_noise *n, bm_noise_kind kind, double snr,
                                   const bm_signal *speech, bm_rng *rng,
                                   bm_signal *out);

#endif
