/*
 * speakers.h - the speakers of bmuf_speech: a voice of espeak-ng (an accent and
 * a variant of it) with a pitch, a speed and a length of the vocal tract of its
 * own. Nothing here fails.
 */
#ifndef BM_TOOLS_SPEECH_SPEAKERS_H
#define BM_TOOLS_SPEECH_SPEAKERS_H

#include <stddef.h>
#include <stdint.h>

/* The parts of a corpus. They have no speaker and no variant in common. */
#define BM_SPEECH_SETS(X) X(train) X(dev) X(test)
typedef enum bm_speech_set {
#define X(name) BM_SPEECH_##name,
    BM_SPEECH_SETS(X)
#undef X
        BM_SPEECH_N_SETS
} bm_speech_set;

const char *bm_speech_set_name(bm_speech_set set);

/* Formants are those of the voice times 1 + BM_FORMANT_STEP k, |k| at most
 * BM_FORMANT_STEPS. */
#define BM_FORMANT_STEP 0.02
enum { BM_FORMANT_STEPS = 4 };

typedef struct bm_speaker {
    char name[32];           /* "train-0042" */
    char voice[64];          /* of espeak-ng: "gmw/en-US+f1" */
    int pitch, range, speed; /* espeak-ng's; speed: words a minute */
    int gap;                 /* 10 ms between words */
    int formants;            /* k */
} bm_speaker;

/* Speaker `number` of a set: the same for the same seed. */
bm_speaker bm_speaker_of(uint64_t seed, bm_speech_set set, size_t number);

#endif
