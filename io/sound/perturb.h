/*
 * perturb.h - adds reverberation to a recording, then noise. What is drawn is a
 * function of the random numbers that the caller gives.
 */
#ifndef BM_IO_SOUND_PERTURB_H
#define BM_IO_SOUND_PERTURB_H

#include "core/rng.h"
#include "io/augment/sound_settings.h"
#include "io/problem.h"
#include "io/sound/sound.h"

/* What all recordings have in common; threads share it. */
typedef struct bm_perturb bm_perturb;

typedef struct bm_perturb_settings {
    bm_sound_settings sound;    /* valid; texts are borrowed while it opens */
    const char *reverb, *noise; /* their names, for messages: "copies.noise" */
    long rate;                  /* of the recordings */
} bm_perturb_settings;

/* Lists the folders. Fails as bm_sound_folder_list does, with BM_ERR_FORMAT if
 * an impulse response is too long, or with BM_ERR_CONFIG if a range is invalid.
 * Close with bm_perturb_close; NULL is a no-op. */
BM_CHECKED bm_status bm_perturb_open(bm_perturb **out,
                                     const bm_perturb_settings *s);
void bm_perturb_close(bm_perturb *p);

/* Whether noise may be babble, for which there must be other recordings. */
bool bm_perturb_babbles(const bm_perturb *p);

/* Of the files in the folders: bm_sound_folder.digest; 0 without folders. */
uint64_t bm_perturb_digest(const bm_perturb *p);

/* Memory of a thread. Fails with BM_ERR_MEMORY. Free with
 * bm_perturber_free; NULL is a no-op. */
typedef struct bm_perturber bm_perturber;
BM_CHECKED bm_status bm_perturber_new(bm_perturber **out, const bm_perturb *p);
void bm_perturber_free(bm_perturber *t);

/* What babble is made of: n >= 1 recordings, at least one of them not `own`. */
typedef struct bm_babble_source {
    size_t n, own; /* own: the number of the recording itself, or any >= n */
    /* Reads number k; one that cannot be used sets *problem. */
    bm_status (*read)(void *self, size_t k, bm_sound *out, bm_problem *problem);
    void *self;
} bm_babble_source;

typedef struct bm_perturb_draw {
    bool reverb, noise; /* which of what the settings have is added */
    bm_rng for_reverb, for_noise;
    const bm_babble_source *babble; /* NULL: noise cannot be babble */
} bm_perturb_draw;

/* Adds reverberation and noise to a sound, which has the rate of the settings.
 * The length and, before the noise, the power stay. A file of noise or of an
 * impulse response that cannot be used sets *problem. Fails with BM_ERR_MEMORY
 * or BM_ERR_IO, or as babble->read does. */
BM_CHECKED bm_status bm_perturb_apply(bm_perturber *t,
                                      const bm_perturb_draw *draw, bm_sound *s,
                                      bm_problem *problem);

#endif
