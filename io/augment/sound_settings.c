#include "io/augment/sound_settings.h"

#include "core/text/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bm_sound_range_read(const char *text, bm_sound_range *out)
{
    char *end = NULL;
    bm_sound_range r = {0};

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

size_t bm_noise_word(const char *noise, size_t i, char out[16])
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

bool bm_noise_made(const char *noise)
{
    char word[16];
    size_t n = bm_noise_word(noise, 0, word);

    for (size_t i = 0; i < n; i++) {
        bm_noise_word(noise, i, word);
        if (!bm_is_word_of(word, BM_NOISES))
            return false;
    }
    return n > 0;
}

void bm_sound_settings_check(const bm_config *config, bm_faults *faults,
                             const char *section, const bm_sound_settings *s)
{
    const struct {
        const char *key, *text, *unit, *example;
        bm_sound_range within;
    } rows[] = {
        {"t60", s->t60, "seconds", "0.2:0.8", {0.05, 5}},
        {"direct", s->direct, "dB", "5:20", {-40, 60}},
        {"snr", s->snr, "dB", "5:20", {-40, 80}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bm_sound_range r = {0};

        if (!bm_sound_range_read(rows[i].text, &r) ||
            r.least < rows[i].within.least || r.most > rows[i].within.most)
            bm_config_fault(faults, config, section, rows[i].key,
                            "%s.%s = %s is invalid; it is a number of %s from "
                            "%g to %g or a range of them, such as %s",
                            section, rows[i].key, rows[i].text, rows[i].unit,
                            rows[i].within.least, rows[i].within.most,
                            rows[i].example);
    }
}
