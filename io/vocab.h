/*
 * vocab.h - the classes of a task and their symbols. Class 0 is the blank,
 * written <blank>. A file has one symbol a line, line 1 is the blank; a space
 * is written <space>.
 *
 * Symbols are characters (UTF-8) or words. A text is cut into characters, or at
 * white space; runs of white space count as one space, none at the ends.
 */
#ifndef BM_IO_VOCAB_H
#define BM_IO_VOCAB_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bm_vocab bm_vocab;

/* Only the blank. Free with bm_vocab_free (NULL is fine). */
BM_CHECKED bm_status bm_vocab_new(bm_vocab **out, bool words);
void bm_vocab_free(bm_vocab *v);

/* From a file, or from the vocab.txt of a data directory. */
BM_CHECKED bm_status bm_vocab_read(bm_vocab **out, const char *path,
                                   bool words);
BM_CHECKED bm_status bm_vocab_write(const bm_vocab *v, const char *path);

/* From and to one text, a line per symbol as in the file. *out: free(). */
BM_CHECKED bm_status bm_vocab_parse(bm_vocab **out, const char *text,
                                    bool words);
BM_CHECKED bm_status bm_vocab_print(const bm_vocab *v, char **out);

BM_CHECKED bm_status bm_vocab_copy(bm_vocab **out, const bm_vocab *v);

/* Adds the symbols of a text that are not there yet. */
BM_CHECKED bm_status bm_vocab_learn(bm_vocab *v, const char *text);
/* Puts all symbols but the blank into byte order, after the last _learn. */
void bm_vocab_sort(bm_vocab *v);

size_t bm_vocab_size(const bm_vocab *v); /* with the blank */
const char *bm_vocab_symbol(const bm_vocab *v, int32_t class);
bool bm_vocab_words(const bm_vocab *v);
bool bm_vocab_equal(const bm_vocab *a, const bm_vocab *b);

/* The classes of a text. labels has room for strlen(text) of them. Symbols that
 * are not in the vocabulary are left out and counted in *unknown; unless
 * `first` is NULL it gets the first of them (room for 64 bytes). */
size_t bm_vocab_encode(const bm_vocab *v, const char *text, int32_t *labels,
                       size_t *unknown, char *first);

/* The text of n classes; *out: free(). */
BM_CHECKED bm_status bm_vocab_decode(const bm_vocab *v, const int32_t *labels,
                                     size_t n, char **out);

#endif
