/* fuzz_sound.c - recordings, resampled, and their features. */
#include "io/features/fbank.h"
#include "io/import/sound.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>

static void run(const char *path, const uint8_t *data, size_t size)
{
    bm_sound s = {0};
    bm_problem problem = {""};

    (void)data;
    (void)size;
    bm_sound_probe(&s, path, &problem);
    if (bm_problem_is(&problem))
        return;
    FUZZ_RULE(s.rate > 0 && s.channels > 0);
    for (long channel = 0; channel < 3; channel++) {
        problem = (bm_problem){""};
        FUZZ_RULE(bm_sound_read(&s, path, channel, &problem) == BM_OK);
        for (size_t i = 0; i < s.n && !bm_problem_is(&problem); i++)
            FUZZ_RULE(isfinite(s.x[i]));
    }
    problem = (bm_problem){""};
    FUZZ_RULE(bm_sound_read(&s, path, 1, &problem) == BM_OK);
    if (!bm_problem_is(&problem))
        FUZZ_RULE(bm_sound_resample(&s, 8000, &problem) == BM_OK);
    bm_sound_free(&s);
}

const fuzz_target fuzz_sound = {"sound", "x.wav", run, NULL};
