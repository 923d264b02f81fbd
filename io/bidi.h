/*
 * bidi.h - lines of text in scripts that run from right to left, as Hebrew and
 * Arabic: which of their characters run the other way, as numbers and Latin words
 * do. By Unicode's bidirectional algorithm (UAX #9), of FriBidi.
 */
#ifndef BM_IO_BIDI_H
#define BM_IO_BIDI_H

#include "core/status.h"

#include <stdbool.h>

/* The number of letters from right to left (classes R and AL) less that of letters
 * from left to right (L). */
long bm_text_letters_left(const char *text);

/* runs_right[i] <- whether the character of byte i runs from left to right in a
 * line from right to left; all do in a line of Latin letters. join: digits before a
 * Latin word run on with it, as those after one do. runs_right: [strlen(text)].
 * Bytes that are not UTF-8 count as a character each. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_text_runs_right(const char *text, bool join,
                                        bool *runs_right);

#endif
