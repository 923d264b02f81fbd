/*
 * copies_settings.c - the table of [copies]. No copies are made by default.
 */
#include "io/import/copies/copies_settings.h"

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
    {ROW(noise, BM_TEXT), "no", 0, 0, "no " BM_NOISES " FOLDER",
     "noise: some of these kinds, or recordings of a folder, one for each "
     "copy; babble is of other recordings"},
    {ROW(snr, BM_TEXT), "5:20", 0, 0, "RANGE",
     "dB of the recording over the noise"},
    {ROW(seed, BM_INT), "1", 0, 0, NULL, "random seed of the copies"},
    {0},
};

bm_sound_settings bm_copies_sound(const bm_copies_settings *s)
{
    return (bm_sound_settings){.reverb = s->reverb,
                               .t60 = s->t60,
                               .direct = s->direct,
                               .noise = s->noise,
                               .snr = s->snr};
}

/* ---- checks -------------------------------------------------------------- */

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
        bm_config_fault(
            faults, config, section, key,
            "copies.%s has no effect; it applies only with copies.%s", key,
            needed);
}

void bm_copies_check(const bm_config *config, bm_faults *faults)
{
    static const char *const all[] = {"speed", "reverb", "noise"};
    bm_copies_settings s = {0};
    bm_sound_settings sound;
    bool reverb = false, noise = false;

    bm_config_peek(config, section, bm_copies_options, &s);
    reverb = strcmp(s.reverb, "made") == 0;
    noise = strcmp(s.noise, "no") != 0;
    check_speed(config, faults, &s);
    sound = bm_copies_sound(&s);
    bm_sound_settings_check(config, faults, section, &sound);
    check_use(config, faults, "t60", reverb, "reverb = made");
    check_use(config, faults, "direct", reverb, "reverb = made");
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
