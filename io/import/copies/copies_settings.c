/*
 * copies_settings.c - the table of [copies]. No copies are made by default.
 */
#include "io/import/copies/copies_settings.h"

#include "core/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW(key, type) #key, type, offsetof(bm_copies_settings, key)

static const char section[] = "copies";

const bm_option bm_copies_options[] = {
    {ROW(count, BM_INT), "0", 0, 100, "copies",
     "perturbed copies of each recording, beside the recording itself"},
    {ROW(speed, BM_TEXT), "", 0, 0, "FACTORS",
     "speeds of the copies in turn, as in \"0.9 1.1\", or from which to which "
     "they are drawn, \"0.9:1.1\"; pitch changes as well"},
    {ROW(reverb, BM_TEXT), "no", 0, 0, "no made FOLDER",
     "rooms: made ones, or impulse responses of a folder, one for each copy"},
    {ROW(t60, BM_TEXT), "0.2:0.8", 0, 0, "RANGE",
     "seconds in which the sound of a made room falls by 60 dB"},
    {ROW(direct, BM_TEXT), "0:12", 0, 0, "RANGE",
     "dB of the direct sound over that of a made room"},
    {ROW(noise, BM_TEXT), "no", 0, 0, "no " BM_COPIES_NOISES " FOLDER",
     "noise: some of these kinds, or recordings of a folder, one for each "
     "copy; babble is of other recordings"},
    {ROW(snr, BM_TEXT), "5:20", 0, 0, "RANGE",
     "dB of the recording over the noise"},
    {ROW(seed, BM_INT), "1", 0, 0, NULL, "random seed of the copies"},
    {0},
};

bool bm_copies_range_read(const char *text, bm_copies_range *out)
{
    char *end = NULL;
    bm_copies_range r = {0};

    r.least = r.most = strtod(text, &end);
    if (end == text)
        return false;
    if (*end == ':') {
        text = end + 1;
        r.most = strtod(text, &end);
        if (end == text)
            return false;
    }
    if (*end != '\0' || !isfinite(r.least) || !isfinite(r.most) ||
        r.least > r.most)
        return false;
    *out = r;
    return true;
}

size_t bm_copies_noise_word(const char *noise, size_t i, char out[16])
{
    size_t n = 0;

    out[0] = '\0';
    for (noise += strspn(noise, " "); *noise != '\0'; n++) {
        size_t length = strcspn(noise, " ");

        if (n == i)
            snprintf(out, 16, "%.*s", length < 16 ? (int)length : 0, noise);
        noise += length;
        noise += strspn(noise, " ");
    }
    return n;
}

bool bm_copies_noise_made(const char *noise)
{
    char word[16];
    size_t n = bm_copies_noise_word(noise, 0, word);

    for (size_t i = 0; i < n; i++) {
        bm_copies_noise_word(noise, i, word);
        if (!bm_is_word_of(word, BM_COPIES_NOISES))
            return false;
    }
    return n > 0;
}

/* ---- checks -------------------------------------------------------------- */

/* A range within bounds. */
static void check_range(const bm_config *config, bm_faults *faults,
                        const char *key, const char *text,
                        bm_copies_range within, const char *unit)
{
    bm_copies_range r = {0};

    if (!bm_copies_range_read(text, &r) || r.least < within.least ||
        r.most > within.most)
        bm_config_fault(faults, config, section, key,
                        "copies.%s = %s is invalid; it is a number of %s from "
                        "%g to %g or a range of them, such as %s",
                        key, text, unit, within.least, within.most,
                        strcmp(key, "t60") == 0 ? "0.2:0.8" : "5:20");
}

static void check_speed(const bm_config *config, bm_faults *faults,
                        const bm_copies_settings *s)
{
    bm_speeds speeds;

    if (!bm_speeds_read(s->speed, &speeds))
        bm_config_fault(faults, config, section, "speed",
                        "copies.speed = %s is invalid; it is up to %d factors "
                        "from 0.25 to 4, as in 0.9 1.1, or a range, 0.9:1.1",
                        s->speed, BM_MOST_SPEEDS);
}

/* Settings of a kind of perturbation that is off. */
static void check_use(const bm_config *config, bm_faults *faults,
                      const char *key, bool used, const char *needed)
{
    if (!used && bm_config_changed(config, section, bm_copies_options, key))
        bm_config_fault(faults, config, section, key,
                        "copies.%s has no effect; it counts with copies.%s",
                        key, needed);
}

void bm_copies_check(const bm_config *config, bm_faults *faults)
{
    static const char *const all[] = {"speed", "reverb", "noise"};
    bm_copies_settings s = {0};
    bool room = false, noise = false;

    bm_config_peek(config, section, bm_copies_options, &s);
    room = strcmp(s.reverb, "made") == 0;
    noise = strcmp(s.noise, "no") != 0;
    check_speed(config, faults, &s);
    check_range(config, faults, "t60", s.t60, (bm_copies_range){0.05, 5},
                "seconds");
    check_range(config, faults, "direct", s.direct, (bm_copies_range){-40, 60},
                "dB");
    check_range(config, faults, "snr", s.snr, (bm_copies_range){-40, 80}, "dB");
    check_use(config, faults, "t60", room, "reverb = made");
    check_use(config, faults, "direct", room, "reverb = made");
    check_use(config, faults, "snr", noise, "noise");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        check_use(config, faults, all[i], s.count > 0, "count > 0");
    if (s.count > 0 && s.speed[0] == '\0' && strcmp(s.reverb, "no") == 0 &&
        !noise)
        bm_config_fault(faults, config, section, "count",
                        "copies.count = %ld makes copies that equal their "
                        "recordings; set copies.speed, reverb or noise",
                        s.count);
}
