/*
 * vocab.h - the classes of a task and their symbols. Class 0 is the blank,
 * written <blank>. A vocabulary file has one symbol per line, the blank on
 * line 1; a space is written <space>. Symbol tables of Kaldi and others are read,
 * too: "SYMBOL NUMBER" lines from 0 on, of which 0 is <eps>, <blk> or <ctc>.
 *
 * Symbols are characters (UTF-8) or words. Among characters there may be names
 * such as <unk> or <sos/eos>, which no text has: their classes are there so that
 * the numbers of other programs stay. A text is split into characters, or
 * at white space. A run of white space counts as one space; white space at both
 * ends is ignored.
 *
 * Labels are in the order of the frames. Of line images that are read from right to
 * left that is the order of the text, but for its runs from left to right, such as
 * numbers (bidi.h): their labels are reversed.
 *
 * Unless stated otherwise, a function that fails returns BM_ERR_MEMORY.
 */
#ifndef BM_IO_VOCAB_H
#define BM_IO_VOCAB_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bm_vocab bm_vocab;

/* A vocabulary with the blank alone. Free with bm_vocab_free; NULL is a no-op.
 */
BM_CHECKED bm_status bm_vocab_new(bm_vocab **out, bool words);
void bm_vocab_free(bm_vocab *v);

/* Reads a file, or the vocab.txt of a data directory. Fails with
 * BM_ERR_MISSING, or with BM_ERR_FORMAT, file and line if a line is not one
 * symbol in UTF-8, a symbol occurs twice or line 1 is not <blank>. */
BM_CHECKED bm_status bm_vocab_read(bm_vocab **out, const char *path,
                                   bool words);
/* Does the file begin as a symbol table? */
bool bm_vocab_is_table(const char *path);

/* Fails with BM_ERR_CREATE or BM_ERR_IO; an older file then stays. */
BM_CHECKED bm_status bm_vocab_write(const bm_vocab *v, const char *path);

/* The same from and to a text with the contents of such a file. Of _print:
 * free(*out). */
BM_CHECKED bm_status bm_vocab_parse(bm_vocab **out, const char *text,
                                    bool words);
BM_CHECKED bm_status bm_vocab_print(const bm_vocab *v, char **out);

/* Free *out with bm_vocab_free. */
BM_CHECKED bm_status bm_vocab_copy(bm_vocab **out, const bm_vocab *v);

/* Whether frames are read from right to left; not at first. _copy takes it over,
 * a file does not have it. */
void bm_vocab_set_right_to_left(bm_vocab *v, bool yes);
bool bm_vocab_right_to_left(const bm_vocab *v);

/* Adds the symbols of a text that are missing. Fails with BM_ERR_FORMAT if the
 * text is not UTF-8. */
BM_CHECKED bm_status bm_vocab_learn(bm_vocab *v, const char *text);
/* Sorts all symbols except the blank in byte order. Classes change: call it
 * after the last bm_vocab_learn and before the first bm_vocab_encode. */
void bm_vocab_sort(bm_vocab *v);

size_t bm_vocab_size(const bm_vocab *v); /* blank included */
/* The symbol of a class, borrowed. class: in [0, size). */
const char *bm_vocab_symbol(const bm_vocab *v, int32_t class);
bool bm_vocab_words(const bm_vocab *v); /* symbols are words */
/* Each symbol is one character, or a name such as <unk>. */
bool bm_vocab_has_characters(const bm_vocab *v);
/* The class of the space between words; -1: there is none. */
int32_t bm_vocab_space(const bm_vocab *v);
/* The class of a symbol, written as in a vocabulary file; -1: there is none. */
int32_t bm_vocab_class(const bm_vocab *v, const char *symbol);
bool bm_vocab_equal(const bm_vocab *a, const bm_vocab *b);

/* All symbols are in Unicode's normalisation form C. */
bool bm_vocab_is_nfc(const bm_vocab *v);

/* The text in form C: an e with a combining acute becomes one character;
 * free(*out). Fails with BM_ERR_FORMAT if it is not UTF-8. */
BM_CHECKED bm_status bm_text_nfc(const char *text, char **out);

/* Writes the classes of a text to `labels`, which has room for strlen(text) of
 * them, and their number to *n. Symbols outside the vocabulary are skipped and
 * counted in *unknown; the first of them is copied to `first`, which has room for
 * 64 bytes or is NULL. */
BM_CHECKED bm_status bm_vocab_encode(const bm_vocab *v, const char *text,
                                     int32_t *labels, size_t *n,
                                     size_t *unknown, char *first);

/* The text of n classes, blanks skipped; free(*out). Fails with BM_ERR_ARG if a
 * label is outside [0, size). */
BM_CHECKED bm_status bm_vocab_decode(const bm_vocab *v, const int32_t *labels,
                                     size_t n, char **out);

/* order [n] <- label i of the text is labels[order[i]]. Of two texts that look the
 * same it is the one where a number follows a Latin word ("page 12"). _spell is the
 * text of labels in that order. They fail as bm_vocab_decode. */
BM_CHECKED bm_status bm_vocab_order(const bm_vocab *v, const int32_t *labels,
                                    size_t n, size_t *order);
BM_CHECKED bm_status bm_vocab_spell(const bm_vocab *v, const int32_t *labels,
                                    size_t n, char **out);

#endif
