/*
 * speech.h - recordings and data sets made of them, in the folder of folder.h:
 * tones, importers on them, a small corpus of tones, and spoken digits.
 */
#ifndef BM_TESTS_SUPPORT_SPEECH_H
#define BM_TESTS_SUPPORT_SPEECH_H

#include "core/config.h"
#include "io/import/importer.h"

#include <stddef.h>

/* ---- recordings and importers ---------------------------------------------- */

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

/* ---- a corpus of tones ----------------------------------------------------- */

/* Sounds of `symbols` in a WAV file: a, b, c are tones, a blank is silence, a
 * tenth of a second each. */
void write_speech(const char *name, const char *symbols);

/* NAME.jsonl with n recordings NAME-0.wav .. of texts that make_text gives. */
void make_speech(const char *name, size_t n);

/* The text of sequence i: one to three words of one to three of a, b, c. */
const char *speech_text(size_t i);

/* Its frames: windows of 25 ms every 10 ms that lie within the recording, at
 * 8000 Hz. */
size_t speech_frames(size_t i);

/* Of the first n of them. */
size_t speech_total(size_t n, size_t (*of)(size_t i));

/* The folder has train/ and test/, packed of 40 and 21 such recordings, and
 * tiny.ini, with which they are learned somewhat, in a second. For setup. */
int make_corpus(void **state);

/* ---- digits ---------------------------------------------------------------- */

/* "train" of 60 recordings and "dev" of 20, packed by the program. */
void digits_make(void);

/* For groups of tests of whole runs: the folder with these sets in it, and the
 * end of all programs that still run. */
int digits_set_up(void **state);
int digits_tear_down(void **state);

/* One more set of all recordings of "train", in units of so many frames; the
 * first of them has another text, unless that is NULL. */
void digits_pack(const char *name, int unit_frames, const char *first_text);

/* The file that a set consists of. */
const char *digits_file(const char *name);

#endif
