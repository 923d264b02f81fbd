/* words.h - words, lists of words separated by blanks, and counted nouns.
 * Nothing here fails or allocates. */
#ifndef BM_CORE_TEXT_WORDS_H
#define BM_CORE_TEXT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Makes a list of an X-macro: BM_LOSSES(BM_WORD). */
#define BM_WORD(name) #name " "

bool bm_ends_with(const char *text, const char *ending);

/* Is `word` in the list? */
bool bm_is_word_of(const char *word, const char *list);

/* out [room] <- the first n characters of a word in small letters without '_' and
 * '-': ReduceLROnPlateau and reduce_lr_on_plateau become reducelronplateau. */
void bm_word_plain(const char *word, size_t n, char *out, size_t room);

/* Insertions, deletions, changes and swaps of neighbours that make one word of
 * the other, whatever the case of letters; SIZE_MAX if `ours` has 64 characters or more. */
size_t bm_word_distance(const char *word, const char *ours);

/* out [room] <- the nearest word of the list; words of the list have less than
 * 64 characters. False, and out is "", if none has at most one mistake in three
 * characters. */
bool bm_nearest_word(const char *word, const char *list, char *out,
                     size_t room);

/* "1 sequence", "3 sequences", "2 mini-batches": a number with its noun, for a
 * message: printf("%s", bm_count_noun(n, "sequence").text). */
typedef struct bm_counted {
    char text[80];
} bm_counted;
bm_counted bm_count_noun(long long n, const char *noun);

#endif
