/*
 * sound.h - reads one channel of a recording in a format of libsndfile (WAV,
 * FLAC, Ogg, NIST SPHERE ..) as samples in 16-bit range, and resamples it. A
 * file that cannot be used sets *problem; functions fail with BM_ERR_MEMORY
 * only.
 */
#ifndef BM_IO_IMPORT_SOUND_H
#define BM_IO_IMPORT_SOUND_H

#include "core/status.h"
#include "io/import/problem.h"

#include <stddef.h>

/* Samples in memory that is reused. Starts as {0}; free with bm_sound_free. */
typedef struct bm_sound {
    float *x; /* [n], -32768 .. 32767 */
    size_t n, room;
    long rate;     /* samples per second */
    long channels; /* of the file */
} bm_sound;

/* Sets rate and channels from the header of the file. */
void bm_sound_probe(bm_sound *s, const char *path, bm_problem *problem);

/* channel: from 1; 0: the mean of all. */
BM_CHECKED bm_status bm_sound_read(bm_sound *s, const char *path, long channel,
                                   bm_problem *problem);

/* Resamples by band-limited interpolation. */
BM_CHECKED bm_status bm_sound_resample(bm_sound *s, long rate,
                                       bm_problem *problem);
void bm_sound_free(bm_sound *s);

#endif
