/*
 * copies_settings.h - the settings of [copies]: perturbed copies of recordings
 * that `bmuf pack` makes features of, beside the recordings as they are.
 */
#ifndef BM_IO_IMPORT_COPIES_COPIES_SETTINGS_H
#define BM_IO_IMPORT_COPIES_COPIES_SETTINGS_H

#include "core/config.h"
#include "io/augment/augment_settings.h"

/* docs/augmentation.md says what each of them does. */
typedef struct bm_copies_settings {
    long count;               /* of each recording; 0: none */
    const char *speed;        /* see bm_speeds_read */
    const char *reverb;       /* no, made, or a folder of impulse responses */
    const char *t60, *direct; /* ranges: s, dB */
    const char *noise;        /* no, words of BM_COPIES_NOISES, or a folder */
    const char *snr;          /* range: dB */
    long seed;
} bm_copies_settings;

#define BM_COPIES_NOISES "white pink babble"

extern const bm_option bm_copies_options[];

/* The check of a bm_section: ranges are ranges, copies differ from their
 * recordings, and settings have an effect. */
void bm_copies_check(const bm_config *config, bm_faults *faults);

/* From `least` to `most`. */
typedef struct bm_copies_range {
    double least, most;
} bm_copies_range;

/* Reads "5:20" or "10"; false if it is neither. */
bool bm_copies_range_read(const char *text, bm_copies_range *out);

/* Is it a list of words of BM_COPIES_NOISES? */
bool bm_copies_noise_made(const char *noise);

/* Word `i` of such a list to out [16], and how many there are. */
size_t bm_copies_noise_word(const char *noise, size_t i, char out[16]);

#endif
