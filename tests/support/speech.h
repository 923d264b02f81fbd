/*
 * speech.h - recordings and data sets made of them, in the folder of folder.h:
 * tones, importers on them, a small corpus of tones, and spoken digits.
 */
#ifndef BM_TESTS_SUPPORT_SPEECH_H
#define BM_TESTS_SUPPORT_SPEECH_H

#include "core/config/config.h"
#include "io/import/importer.h"

#include <stddef.h>

/* ---- recordings and importers -------------------------------------------- */

/* A configuration with "section.key=value" settings. */
#define SET(...) set_all((const char *const[]){__VA_ARGS__, NULL})
bm_config *set_all(const char *const *assignments);

/* Writes the manifest to the folder and opens an importer on it; frees the
 * configuration. Fails as bm_importer_open. */
BM_CHECKED bm_status open_importer(bm_importer **i, const char *name,
                                   bm_config *config, const char *manifest);
bm_item next_item(bm_importer *i);

/* x [n, channels] <- a tone of 16-bit numbers; each channel is an octave above
 * the one before. */
void make_tone(int *x, size_t n, int channels, double hz, int rate);

/* Writes x [n, channels <= 2] of 16-bit numbers to a file in a format of
 * libsndfile; writes a tone of 440 Hz, or noise of one channel, to a 16-bit WAV
 * file. n is at most 16000. */
void write_sound(const char *name, int format, const int *x, size_t n,
                 int channels, int rate);
void write_tone(const char *name, size_t n, int channels, int rate);
void write_noise(const char *name, size_t n, double size);

/* x [room] <- the samples of a recording; returns how many. Writes x [n] to a
 * 16-bit WAV file. */
size_t read_samples(const char *name, float *x, size_t room);
void write_samples(const char *name, int rate, const float *x, size_t n);

/* ---- a corpus of tones --------------------------------------------------- */

/* Writes `symbols` as a WAV file: a, b, c are tones, a blank is silence, 0.1 s
 * each. */
void write_speech(const char *name, const char *symbols);

/* Writes n recordings NAME-0.wav .. of speech_text and their manifest
 * NAME.jsonl. */
void make_speech(const char *name, size_t n);

/* The text of sequence i: one to three words of one to three of a, b, c. */
const char *speech_text(size_t i);

/* Its number of frames: windows of 25 ms every 10 ms, at 8000 Hz. */
size_t speech_frames(size_t i);

/* The sum of `of` over the first n sequences. */
size_t speech_total(size_t n, size_t (*of)(size_t i));

/* Setup of a group: makes the folder with train/ and test/, packed of 42 and 21
 * such recordings, and tiny.ini, which trains on them in a second. */
int make_corpus(void **state);

/* ---- digits -------------------------------------------------------------- */

/* Packs "train" of 60 recordings and "dev" of 20: spoken digits of the real
 * data if they exist, else words with a tone for each letter. */
void digits_make(void);

/* Setup and teardown of a group: makes the folder with these sets; kills all
 * programs that still run and removes it. */
int digits_set_up(void **state);
int digits_tear_down(void **state);

/* Packs one more set of all recordings of "train", in units of unit_frames; the
 * first one gets another text unless that is NULL. */
void digits_pack(const char *name, int unit_frames, const char *first_text);

/* The path of a set's only shard. */
const char *digits_file(const char *name);

#endif
