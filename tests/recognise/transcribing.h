/*
 * transcribing.h - models for the corpus of texts of speech.h, and transcripts made
 * with them.
 */
#ifndef BM_TESTS_RECOGNISE_TRANSCRIBING_H
#define BM_TESTS_RECOGNISE_TRANSCRIBING_H

#include "recognise/transcriber.h"
#include "tests/support/command.h"

#include <stdbool.h>

/* The number of recordings of test/, and a bound on the characters of a text. */
enum { N = 21, MOST_GLYPHS = 12 };

/* Packs a manifest of the KIND "--images" or "--features" with a setting, and
 * trains on the set for 40 epochs with tiny.ini. */
void make_model(const char *kind, const char *manifest, const char *set,
                const char *setting, const char *run);

bm_transcriber *open_model(const char *name);

/* What is in a file of the folder; bm_transcript_free. */
bm_transcript *transcribe(bm_transcriber *t, const char *name);

/* Bit for bit, of one reading each. */
bool same(const bm_transcript *a, const bm_transcript *b);

/* Fails with the status and words in the message. */
#define assert_status(call, code, words)                                       \
    do {                                                                       \
        assert_int_equal((call), (code));                                      \
        assert_says(bm_last_message(), (words));                               \
    } while (0)

#endif
