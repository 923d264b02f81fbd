/*
 * sequences.h - small sequences that are augmented by given settings, and the
 * draws of one.
 */
#ifndef BM_TESTS_IO_AUGMENT_SEQUENCES_H
#define BM_TESTS_IO_AUGMENT_SEQUENCES_H

#include "io/augment/augment.h"

#include <stddef.h>
#include <stdint.h>

/* ---- settings ------------------------------------------------------------ */

/* Settings "key=value" of the section, until the next call if one is a text. */
#define SETTINGS(...)                                                          \
    settings_of((const char *const[]){__VA_ARGS__},                            \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))
bm_augment_settings settings_of(const char *const *set, size_t n);

/* ---- sequences ----------------------------------------------------------- */

/* Frames that are columns of 9 pixels: the settings of their features, and the
 * size of a small image of them. */
extern const char image[];
enum { STRIPS = 7, ROWS = 9 };

extern const bm_fit any; /* all lengths fit */

/* Numbers in [0, 1) that are a function of the place; free(). */
float *some(size_t n);

/* Augments x [T, D] by settings; free(). */
float *augmented(const bm_augment_settings *s, const char *description,
                 const float *x, size_t T, size_t D, uint64_t key,
                 size_t *frames);

/* ---- draws --------------------------------------------------------------- */

/* Number k of a stream of a sequence, by the definitions of core/rng.h. */
typedef struct stream {
    uint64_t key, k;
} stream;

uint64_t below(stream *s, uint64_t n);

#endif
