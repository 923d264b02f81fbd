/*
 * sound.h - reads one channel of a recording in a format of libsndfile (WAV,
 * FLAC, Ogg, MP3, NIST SPHERE ..) as samples in 16-bit range, and resamples it. A
 * file that cannot be used sets *problem; functions fail with BM_ERR_MEMORY, or
 * with BM_ERR_IO if the disk does.
 */
#ifndef BM_IO_SOUND_SOUND_H
#define BM_IO_SOUND_SOUND_H

#include "core/status.h"
#include "io/problem.h"

#include <stddef.h>

/* Samples in memory that is reused. Starts as {0}; free with bm_sound_free. A
 * recording that is decoded from its start, as Ogg and MP3 are, stays open behind
 * an excerpt, so that later ones go on from there. */
typedef struct bm_sound {
    float *x; /* [n], -32768 .. 32767 */
    size_t n, capacity;
    long rate;      /* samples per second */
    long channels;  /* of the file */
    double seconds; /* of the file by its header; 0: unknown */
    bool overrun;   /* the excerpt was cut at the end of the file */
    struct bm_sound_source *open; /* of the last excerpt; NULL: none */
} bm_sound;

/* Makes *x an array for n samples, of which *capacity are there; it is at least
 * doubled if it grows, and what it had is kept. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_samples_reserve(float **x, size_t *capacity, size_t n);

/* A part of a recording. */
typedef struct bm_excerpt {
    double start, duration; /* seconds; duration 0: up to the end */
    long channel;           /* from 1; 0: not said */
} bm_excerpt;

/* A path is a file, or a byte of an archive: "wav.ark:1234" (sound_bytes.h).
 * Sets rate, channels and seconds from the header of the file. */
BM_CHECKED bm_status bm_sound_probe(bm_sound *s, const char *path,
                                    bm_problem *problem);

/* Reads samples round(rate * start) to round(rate * (start + duration)), the
 * last excluded. At the end of the file 10 ms of them may be missing, since
 * programs round durations, and up to 0.5 s with s->overrun. channel: from 1;
 * 0: that of the excerpt, or the mean of all. */
BM_CHECKED bm_status bm_sound_read(bm_sound *s, const char *path, long channel,
                                   bm_excerpt part, bm_problem *problem);

/* What is remarkable about samples as they were read: "cut at the end of the
 * recording", "digital silence",
 * "constant" or "clipped": at least one in 1000 at the end of the range of 16
 * bits. NULL: nothing. Static. */
const char *bm_sound_remark(const bm_sound *s);

/* Resamples by band-limited interpolation. */
BM_CHECKED bm_status bm_sound_resample(bm_sound *s, long rate,
                                       bm_problem *problem);
/* The same, so that it is played `speed` times as fast: frequencies are
 * multiplied by it. */
BM_CHECKED bm_status bm_sound_speed(bm_sound *s, double speed, long rate,
                                    bm_problem *problem);
void bm_sound_free(bm_sound *s);

#endif
