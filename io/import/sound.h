/*
 * sound.h - recordings as samples in 16-bit range: every format of libsndfile
 * (WAV, FLAC, Ogg, NIST SPHERE ..), one channel of it, at another rate if
 * wanted. A file that cannot be used is a problem, not a failure.
 */
#ifndef BM_IO_IMPORT_SOUND_H
#define BM_IO_IMPORT_SOUND_H

#include "core/status.h"
#include "io/import/problem.h"

#include <stddef.h>

/* Samples in memory that is reused. Start with {0}. */
typedef struct bm_sound {
    float *x; /* [n], -32768 .. 32767 */
    size_t n, room;
    long rate;     /* samples per second */
    long channels; /* of the file */
} bm_sound;

/* Only rate and channels, from the head of the file. */
void bm_sound_probe(bm_sound *s, const char *path, bm_problem *problem);

/* Channel 1 .. or, for 0, the mean of all. */
BM_CHECKED bm_status bm_sound_read(bm_sound *s, const char *path, long channel,
                                   bm_problem *problem);

/* To another rate, by band-limited interpolation. */
BM_CHECKED bm_status bm_sound_resample(bm_sound *s, long rate,
                                       bm_problem *problem);
void bm_sound_free(bm_sound *s);

#endif
