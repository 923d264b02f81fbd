/*
 * augment_settings.h - the settings of [augment]: how the features of training
 * sequences are changed, differently in each epoch.
 */
#ifndef BM_IO_AUGMENT_AUGMENT_SETTINGS_H
#define BM_IO_AUGMENT_AUGMENT_SETTINGS_H

#include "core/config/config.h"
#include "io/augment/sound_settings.h"

/* docs/data/augmentation.md says what each of them does. */
typedef struct bm_augment_settings {
    double share;
    const char *speed;  /* see bm_speeds_read */
    const char *reverb; /* of recordings, with the next three */
    double reverb_share;
    const char *t60, *direct;
    const char *noise_sound; /* likewise, with the next two */
    double noise_sound_share;
    const char *snr;
    long warp;
    long time_masks, time_width;
    double time_share;
    long frequency_masks, frequency_width;
    double offset, contrast, noise;
    double slant, height, shift;
    double elastic, elastic_grid;
    double stroke;
    long cutouts;
    double cutout_size;
} bm_augment_settings;

extern const bm_option bm_augment_options[];

/* The check of a bm_section: augment.speed is a list or a range, and so are the
 * settings of reverberation and noise. */
void bm_augment_check(const bm_config *config, bm_faults *faults);

/* Do the settings change anything? */
bool bm_augment_any(const bm_augment_settings *s);

/* Do they add reverberation to recordings, or noise? Do they distort images,
 * change values, or mask? Time and strokes have a setting each. */
bool bm_augment_has_reverb(const bm_augment_settings *s);
bool bm_augment_has_noises(const bm_augment_settings *s);
bool bm_augment_distorts(const bm_augment_settings *s);
bool bm_augment_has_values(const bm_augment_settings *s);
bool bm_augment_has_masks(const bm_augment_settings *s);

/* Rooms and noise; texts are those of `s`. */
bm_sound_settings bm_augment_sound(const bm_augment_settings *s);

/* Factors of the speed: "0.9 1 1.1", one of which is drawn, or "0.9:1.1", from
 * which to which they are drawn; "": 1. */
enum { BM_MOST_SPEEDS = 16 };
typedef struct bm_speeds {
    int n;
    bool range; /* n = 2 */
    double factor[BM_MOST_SPEEDS];
} bm_speeds;

/* False if the text is neither, or a factor is outside [0.25, 4]. */
bool bm_speeds_read(const char *text, bm_speeds *out);

/* The largest number of frames that one frame can become: 1 / the smallest
 * factor, at least 1. */
double bm_speeds_stretch(const bm_speeds *s);

#endif
