/* words.h - single words, and lists of words with blanks between them. */
#ifndef BM_CORE_WORDS_H
#define BM_CORE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* For such a list of everything there is: BM_LOSSES(BM_WORD). */
#define BM_WORD(name) #name " "

bool bm_ends_with(const char *text, const char *ending);

/* Is the word one of a list? */
bool bm_is_word_of(const char *word, const char *list);

/* Changes of one letter that make one word of another; ours is short. */
size_t bm_word_distance(const char *word, const char *ours);

/* The word of a list that is nearest to `word`. */
void bm_nearest_word(const char *word, const char *list, char *out,
                     size_t room);

#endif
