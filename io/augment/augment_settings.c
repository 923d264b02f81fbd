/*
 * augment_settings.c - the table of [augment]. Everything is off by default.
 */
#include "io/augment/augment_settings.h"

#include <stdlib.h>
#include <string.h>

#define ROW(key, type) #key, type, offsetof(bm_augment_settings, key)

const bm_option bm_augment_options[] = {
    {ROW(share, BM_FLOAT), "1", 0, 1, NULL,
     "fraction of the sequences that are changed, drawn again in each epoch"},
    {ROW(reverb, BM_TEXT), "no", 0, 0, "no made FOLDER",
     "rooms for recordings: made ones, or impulse responses of a folder; the "
     "shards must keep samples (shard.samples)"},
    {ROW(reverb_share, BM_FLOAT), "0.5", 0, 1, NULL,
     "fraction of the changed sequences that get a room"},
    {ROW(t60, BM_TEXT), "0.2:0.8", 0, 0, "RANGE",
     "seconds in which the sound of a made room falls by 60 dB"},
    {ROW(direct, BM_TEXT), "0:12", 0, 0, "RANGE",
     "dB of the direct sound over that of a made room"},
    {ROW(noise_sound, BM_TEXT), "no", 0, 0, "no " BM_NOISES " FOLDER",
     "noise for recordings: one of these kinds, or recordings of a folder; "
     "babble is of other recordings; likewise needs shard.samples"},
    {ROW(noise_sound_share, BM_FLOAT), "0.5", 0, 1, NULL,
     "fraction of the changed sequences that get such noise"},
    {ROW(snr, BM_TEXT), "5:20", 0, 0, "RANGE",
     "dB of the recording over such noise"},
    {ROW(speed, BM_TEXT), "", 0, 0, "FACTORS",
     "factors of speed to draw from, as in \"0.9 1 1.1\", or from which to "
     "which, \"0.9:1.1\"; features are resampled along time"},
    {ROW(warp, BM_INT), "0", 0, 1e6, "frames",
     "time warping: a random frame moves by less than this, the rest is "
     "stretched"},
    {ROW(time_masks, BM_INT), "0", 0, 100, "masks",
     "runs of frames that are masked in a sequence"},
    {ROW(time_width, BM_INT), "40", 1, 1e6, "frames",
     "largest width of a time mask"},
    {ROW(time_share, BM_FLOAT), "0.2", 0, 1, NULL,
     "largest width of a time mask as a fraction of the sequence"},
    {ROW(frequency_masks, BM_INT), "0", 0, 100, "masks",
     "runs of bands, or rows of pixels, that are masked in a sequence"},
    {ROW(frequency_width, BM_INT), "8", 1, 1e6, "bands",
     "largest width of a frequency mask"},
    {ROW(offset, BM_FLOAT), "0", 0, 100, NULL,
     "largest number added to or subtracted from all of a sequence: volume of "
     "recordings, in deviations; brightness of images, from background 0 to "
     "ink 1"},
    {ROW(contrast, BM_FLOAT), "0", 0, 1, NULL,
     "largest change of the contrast, as a fraction"},
    {ROW(noise, BM_FLOAT), "0", 0, 100, NULL,
     "largest deviation of Gaussian noise, in deviations of each feature; in "
     "images, ink is 1"},
    {ROW(slant, BM_FLOAT), "0", 0, 4, NULL,
     "largest slant of an image to either side: pixels of width for a pixel "
     "of height"},
    {ROW(height, BM_FLOAT), "0", 0, 0.9, NULL,
     "largest change of the height of what is in an image, as a fraction"},
    {ROW(shift, BM_FLOAT), "0", 0, 1, NULL,
     "largest shift of an image up or down, as a fraction of its height"},
    {ROW(elastic, BM_FLOAT), "0", 0, 1, NULL,
     "elastic distortion: standard deviation of the displacement of pixels, "
     "as a fraction of the height"},
    {ROW(elastic_grid, BM_FLOAT), "0.3", 0.02, 100, NULL,
     "distance over which displacements change, as a fraction of the height"},
    {ROW(stroke, BM_FLOAT), "0", 0, 8, "pixels",
     "erosion and dilation: most by which ink shrinks or grows on each side"},
    {ROW(cutouts, BM_INT), "0", 0, 100, NULL,
     "rectangles that are masked in a sequence"},
    {ROW(cutout_size, BM_FLOAT), "0.3", 0, 1, NULL,
     "largest side of these rectangles, as a fraction of the height"},
    {0},
};

void bm_augment_check(const bm_config *config, bm_faults *faults)
{
    bm_augment_settings s = {0};
    bm_sound_settings sound;
    bm_speeds speeds;

    bm_config_peek(config, "augment", bm_augment_options, &s);
    if (!bm_speeds_read(s.speed, &speeds))
        bm_config_fault(faults, config, "augment", "speed",
                        "augment.speed = %s is invalid; it is up to %d factors "
                        "from 0.25 to 4, as in 0.9 1 1.1, or a range, 0.9:1.1",
                        s.speed, BM_MOST_SPEEDS);
    sound = bm_augment_sound(&s);
    bm_sound_settings_check(config, faults, "augment", &sound);
}

bm_sound_settings bm_augment_sound(const bm_augment_settings *s)
{
    return (bm_sound_settings){.reverb = s->reverb,
                               .t60 = s->t60,
                               .direct = s->direct,
                               .noise = s->noise_sound,
                               .snr = s->snr};
}

bool bm_augment_has_reverb(const bm_augment_settings *s)
{
    return s->share > 0 && s->reverb_share > 0 && strcmp(s->reverb, "no") != 0;
}

bool bm_augment_has_noises(const bm_augment_settings *s)
{
    return s->share > 0 && s->noise_sound_share > 0 &&
           strcmp(s->noise_sound, "no") != 0;
}

bool bm_augment_distorts(const bm_augment_settings *s)
{
    return s->slant > 0 || s->height > 0 || s->shift > 0 || s->elastic > 0;
}

bool bm_augment_has_values(const bm_augment_settings *s)
{
    return s->contrast > 0 || s->offset > 0 || s->noise > 0;
}

bool bm_augment_has_masks(const bm_augment_settings *s)
{
    return s->time_masks > 0 || s->frequency_masks > 0 || s->cutouts > 0;
}

bool bm_augment_any(const bm_augment_settings *s)
{
    bm_speeds speeds;
    bool same = bm_speeds_read(s->speed, &speeds) && speeds.n == 1 &&
                speeds.factor[0] == 1;

    return s->share > 0 &&
           (bm_augment_has_reverb(s) || bm_augment_has_noises(s) || !same ||
            s->warp > 0 || bm_augment_distorts(s) || s->stroke > 0 ||
            bm_augment_has_values(s) || bm_augment_has_masks(s));
}

/* A factor at *text; moves past it. */
static bool read_factor(const char **text, bm_speeds *s)
{
    char *end = NULL;
    double x = strtod(*text, &end);

    if (end == *text || !(x >= 0.25 && x <= 4) || s->n == BM_MOST_SPEEDS)
        return false;
    s->factor[s->n++] = x;
    *text = end;
    return true;
}

bool bm_speeds_read(const char *text, bm_speeds *out)
{
    bm_speeds s = {0};

    if (*text == '\0') {
        *out = (bm_speeds){.n = 1, .factor = {1}};
        return true;
    }
    if (!read_factor(&text, &s))
        return false;
    if (*text == ':') {
        text++;
        s.range = true;
        if (!read_factor(&text, &s) || *text != '\0' ||
            s.factor[0] > s.factor[1])
            return false;
    }
    while (*text == ' ') {
        text += strspn(text, " ");
        if (!read_factor(&text, &s))
            return false;
    }
    if (*text != '\0')
        return false;
    *out = s;
    return true;
}

double bm_speeds_stretch(const bm_speeds *s)
{
    double least = 1;

    for (int i = 0; i < s->n; i++)
        least = s->factor[i] < least ? s->factor[i] : least;
    return 1 / least;
}
