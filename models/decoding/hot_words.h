/*
 * hot_words.h - words and phrases whose hypotheses get a boost: an automaton of
 * their labels (Aho and Corasick 1975). Each label of a hot word adds its part of
 * the boost at once; if the word does not end as it should, that is taken back.
 *
 * Hot words begin and end where words do. The end of a word is label 0: it stands
 * between the words of a phrase, and is given to bm_hot_step after each word.
 */
#ifndef BM_MODELS_DECODING_HOT_WORDS_H
#define BM_MODELS_DECODING_HOT_WORDS_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct bm_hot_words bm_hot_words;

/* Makes an automaton of phrases, which it copies. Close with bm_hot_free; NULL is
 * a no-op. Fails with BM_ERR_MEMORY. */
typedef struct bm_hot_phrase {
    const int32_t *labels; /* [n], 1 or more; 0 between words */
    size_t n;
    double boost;
} bm_hot_phrase;
BM_CHECKED bm_status bm_hot_new(bm_hot_words **out,
                                const bm_hot_phrase *phrases, size_t n);
void bm_hot_free(bm_hot_words *h);

/* A state: 0 is that where a word begins. Adds to *score what the label, or the end
 * of a word, changes. Returns the state after it. */
uint32_t bm_hot_step(const bm_hot_words *h, uint32_t from, int32_t label,
                     double *score);

/* The same at the end of a text. */
void bm_hot_end(const bm_hot_words *h, uint32_t from, double *score);

/* The most that one label can add. */
double bm_hot_gain(const bm_hot_words *h);

#endif
