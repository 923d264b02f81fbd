/*
 * sound_settings.h - what settings of reverberation and noise have in common,
 * those of [copies] of `bmuf pack` and those of [augment]: ranges, and kinds of
 * noise.
 */
#ifndef BM_IO_AUGMENT_SOUND_SETTINGS_H
#define BM_IO_AUGMENT_SOUND_SETTINGS_H

#include "core/config/config.h"

/* Kinds of noise that are made. */
#define BM_NOISES "white pink babble"

typedef struct bm_sound_settings {
    const char *reverb;       /* no, made, or a folder of impulse responses */
    const char *t60, *direct; /* ranges: s, dB */
    const char *noise;        /* no, words of BM_NOISES, or a folder */
    const char *snr;          /* range: dB */
} bm_sound_settings;

/* Part of the check of a bm_section: its t60, direct and snr are ranges within
 * bounds. */
void bm_sound_settings_check(const bm_config *config, bm_faults *faults,
                             const char *section, const bm_sound_settings *s);

/* From `least` to `most`. */
typedef struct bm_sound_range {
    double least, most;
} bm_sound_range;

/* Reads "5:20" or "10"; false if it is neither. */
bool bm_sound_range_read(const char *text, bm_sound_range *out);

/* Is it a list of words of BM_NOISES? */
bool bm_noise_made(const char *noise);

/* Word `i` of such a list to out [16], and how many there are. */
size_t bm_noise_word(const char *noise, size_t i, char out[16]);

#endif
