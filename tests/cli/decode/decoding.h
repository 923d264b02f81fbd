/*
 * decoding.h - a model of the corpus of tones (speech.h) that makes some errors,
 * inputs for bmuf decode, and what it prints of them.
 */
#ifndef BM_TESTS_CLI_DECODE_DECODING_H
#define BM_TESTS_CLI_DECODE_DECODING_H

#include "tests/support/command.h"

#include <stddef.h>

enum { N = 21 }; /* recordings of test/ */

/*
 * Setup of a group: make_corpus, and half.safetensors, trained on train/ for 8
 * epochs. Lists, folders and data sets of the recordings; long.wav, all of them
 * twice with silence between; files that are no recordings.
 */
int make_decode_inputs(void **state);

/* What stdout says, with the exit code 0. */
const char *printed(outcome o);

#define DECODE(...) printed(BMUF("decode", "half.safetensors", __VA_ARGS__))

/* Line i of a text, valid until the next call. */
const char *line_of(const char *all, size_t i);

#endif
