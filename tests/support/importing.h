/*
 * importing.h - recordings to import, and the importers' first steps.
 */
#ifndef BM_TESTS_SUPPORT_IMPORTING_H
#define BM_TESTS_SUPPORT_IMPORTING_H

#include "core/config.h"
#include "io/import/importer.h"

#include <stddef.h>

/* A configuration of "section.key=value" texts. */
#define SET(...) set_all((const char *const[]){__VA_ARGS__, NULL})
bm_config *set_all(const char *const *assignments);

/* Opens the importer on a manifest of this text, in the folder; frees the
 * configuration. */
BM_CHECKED bm_status open_importer(bm_importer **i, const char *name,
                                   bm_config *config, const char *manifest);
bm_item next_item(bm_importer *i);

/* A tone of 16-bit numbers, one channel beside another, each an octave above
 * the one before. */
void make_tone(int *x, size_t n, int channels, double hz, int rate);

/* Up to 16000 x [n, channels <= 2] of 16-bit numbers into a file of one of
 * libsndfile's formats; a tone of 440 Hz, or noise, into a 16-bit WAV file. */
void write_sound(const char *name, int format, const int *x, size_t n,
                 int channels, int rate);
void write_tone(const char *name, size_t n, int channels, int rate);
void write_noise(const char *name, size_t n, double size);

#endif
