/* fuzz_sound.c - recordings, resampled, and their features; and as recordings in
 * an archive, behind a key of four letters. */
#include "io/features/fbank.h"
#include "io/sound/sound.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void read_archive(const char *path)
{
    char place[400];
    bm_sound s = {0};
    bm_problem problem = {0};

    snprintf(place, sizeof place, "%s:5", path);
    FUZZ_RULE(bm_sound_read(&s, place, 0, (bm_excerpt){0}, &problem) == BM_OK);
    bm_sound_free(&s);
}

static void run(const char *path, const uint8_t *data, size_t size)
{
    static const bm_excerpt part[] = {{0}, {0.001, 0.01, 0}, {0.005, 1e6, 0}};
    bm_sound s = {0};
    bm_problem problem = {0};

    (void)data;
    (void)size;
    read_archive(path);
    FUZZ_RULE(bm_sound_probe(&s, path, &problem) == BM_OK);
    if (bm_problem_is(&problem))
        return;
    FUZZ_RULE(s.rate > 0 && s.channels > 0);
    for (long channel = 0; channel < 3; channel++) {
        problem = (bm_problem){0};
        FUZZ_RULE(bm_sound_read(&s, path, channel, part[channel], &problem) ==
                  BM_OK);
        bm_sound_remark(&s);
        for (size_t i = 0; i < s.n && !bm_problem_is(&problem); i++)
            FUZZ_RULE(isfinite(s.x[i]));
    }
    problem = (bm_problem){0};
    FUZZ_RULE(bm_sound_read(&s, path, 1, part[0], &problem) == BM_OK);
    if (!bm_problem_is(&problem))
        FUZZ_RULE(bm_sound_resample(&s, 8000, &problem) == BM_OK);
    bm_sound_free(&s);
}

const fuzz_target fuzz_sound = {"sound", "x.wav", run, NULL};
