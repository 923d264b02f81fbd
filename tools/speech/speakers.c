#include "tools/speech/speakers.h"

#include "core/rng.h"
#include "core/status.h"

#include <stdio.h>
#include <string.h>

static const char *const accents[] = {
    "gmw/en",
    "gmw/en-US",
    "gmw/en-US",
    "gmw/en-029",
    "gmw/en-GB-scotland",
    "gmw/en-GB-x-rp",
    "gmw/en-GB-x-gbclan",
    "gmw/en-GB-x-gbcwmd",
};

/* Variants that sound like people; espeak-ng has robots and demons as well. */
static const char *const train[] = {
    "m1",      "m2",      "m3",       "m5",     "m7",     "f1",    "f2",
    "f3",      "Alex",    "Alicia",   "Andrea", "Andy",   "Annie", "Gene",
    "Hugo",    "Jacky",   "Lee",      "Mario",  "Mike",   "adam",  "anika",
    "antonio", "belinda", "benjamin", "caleb",  "david",  "ed",    "edward",
    "linda",   "max",     "pablo",    "paul",   "quincy", "rob",   "robert",
    "sandro",  "steph",   "travis",   "victor", "zac",
};
static const char *const dev[] = {"m8", "f5", "grandma", "Michael"};
static const char *const test[] = {"m4", "f4", "m6", "aunty", "Diogo", "iven"};

static const struct {
    const char *name;
    const char *const *variants;
    size_t n;
} sets[] = {
#define X(name) {#name, name, sizeof name / sizeof name[0]},
    BM_SPEECH_SETS(X)
#undef X
};

const char *bm_speech_set_name(bm_speech_set set)
{
    return sets[set].name;
}

/* lowest .. highest */
static int between(bm_rng *rng, int lowest, int highest)
{
    return lowest +
           (int)bm_rng_below(rng, (uint64_t)highest - (uint64_t)lowest + 1);
}

bm_speaker bm_speaker_of(uint64_t seed, bm_speech_set set, size_t number)
{
    bm_rng rng = bm_rng_make(seed, "speaker", bm_rng_fork(set, number));
    size_t accent =
        (size_t)bm_rng_below(&rng, sizeof accents / sizeof accents[0]);
    size_t variant = (size_t)bm_rng_below(&rng, sets[set].n);
    bm_speaker s = {
        .pitch = between(&rng, 30, 70),
        .range = between(&rng, 30, 70),
        .speed = between(&rng, 110, 160),
        .gap = between(&rng, 0, 8),
        .formants = between(&rng, -BM_FORMANT_STEPS, BM_FORMANT_STEPS),
    };

    snprintf(s.name, sizeof s.name, "%s-%04zu", sets[set].name, number);
    snprintf(s.voice, sizeof s.voice, "%s+%s", accents[accent],
             sets[set].variants[variant]);
    return s;
}
