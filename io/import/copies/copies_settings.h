/*
 * copies_settings.h - the settings of [copies]: perturbed copies of recordings
 * that `bmuf pack` makes features of, beside the recordings as they are.
 */
#ifndef BM_IO_IMPORT_COPIES_COPIES_SETTINGS_H
#define BM_IO_IMPORT_COPIES_COPIES_SETTINGS_H

#include "core/config/config.h"
#include "io/augment/augment_settings.h"
#include "io/augment/sound_settings.h"

/* docs/data/augmentation.md says what each of them does. */
typedef struct bm_copies_settings {
    long count;               /* of each recording; 0: none */
    const char *speed;        /* see bm_speeds_read */
    const char *reverb;       /* no, made, or a folder of impulse responses */
    const char *t60, *direct; /* ranges: s, dB */
    const char *noise;        /* no, words of BM_NOISES, or a folder */
    const char *snr;          /* range: dB */
    long seed;
} bm_copies_settings;

extern const bm_option bm_copies_options[];

/* The check of a bm_section: ranges are ranges, copies differ from their
 * recordings, and settings have an effect. */
void bm_copies_check(const bm_config *config, bm_faults *faults);

/* Its reverberation and noise; texts are those of `s`. */
bm_sound_settings bm_copies_sound(const bm_copies_settings *s);

#endif
