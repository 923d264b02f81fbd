/* words.h - words, and lists of words separated by blanks. Nothing here fails
 * or allocates. */
#ifndef BM_CORE_WORDS_H
#define BM_CORE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Makes a list of an X-macro: BM_LOSSES(BM_WORD). */
#define BM_WORD(name) #name " "

bool bm_ends_with(const char *text, const char *ending);

/* Is `word` in the list? */
bool bm_is_word_of(const char *word, const char *list);

/* Levenshtein distance; SIZE_MAX if `ours` has 64 characters or more. */
size_t bm_word_distance(const char *word, const char *ours);

/* out [room] <- the word of the list with the smallest distance; words of the
 * list have less than 64 characters. */
void bm_nearest_word(const char *word, const char *list, char *out,
                     size_t room);

#endif
