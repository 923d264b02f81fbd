/*
 * language.h - what is known of the language, for the beam search: a language
 * model (lm.h), a lexicon, hot words. A language does not change once it is open:
 * threads may share it.
 *
 *     bm_language_settings settings = bm_language_defaults();
 *
 *     settings.lm = "words.arpa.gz";
 *     BM_TRY(bm_language_open(&language, &settings, vocab));
 *     decoder.language = language;
 *     ..
 *     bm_language_close(language);
 *
 * A hypothesis has a state, which bm_language_begin makes and each label changes.
 * Where a label can mean several things, as the end of two words that are spelled
 * alike, there are several ways, numbered from 0.
 */
#ifndef BM_MODELS_DECODING_LANGUAGE_H
#define BM_MODELS_DECODING_LANGUAGE_H

#include "io/vocab.h"

/* Texts are borrowed until the language is open. */
typedef struct bm_language_settings {
    const char *lm;       /* file of a language model; NULL: none */
    const char *lexicon;  /* file of a lexicon; NULL: with a model of words, its
                            words; else none */
    const char *hot_file; /* file of hot words; NULL: none */
    const char *const *hot_words; /* [n_hot_words], each "WORDS" or
                                     "WORDS=BOOST" */
    size_t n_hot_words;
    double hot_boost;     /* of hot words without one of their own */
    double lm_weight;     /* times ln p of the model, 0 or more */
    double word_score;    /* added for each word; with a model of symbols, for
                             each symbol */
    double unknown_score; /* added for each word outside the lexicon; minus
                             infinity: there are no such words */
} bm_language_settings;

typedef struct bm_language bm_language;

/* Weight 0.5, word score 1.5, unknown score -10, boost 5; no files. */
bm_language_settings bm_language_defaults(void);

/* Reads the files; borrows vocab. Fails with BM_ERR_MISSING, BM_ERR_IO,
 * BM_ERR_FORMAT (file, line), BM_ERR_ARG or BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_language_open(bm_language **out,
                                      const bm_language_settings *settings,
                                      const bm_vocab *vocab);
/* NULL is a no-op. */
void bm_language_close(bm_language *l);

/* The text of a word of the lexicon, borrowed. */
const char *bm_language_word(const bm_language *l, int32_t word);

#endif
