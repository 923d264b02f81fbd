/* hot_phrases.h - reads hot words of the command line and of a file. */
#ifndef BM_MODELS_DECODING_HOT_PHRASES_H
#define BM_MODELS_DECODING_HOT_PHRASES_H

#include "models/decoding/hot_words.h"
#include "models/decoding/lexicon.h"

/* Borrowed. */
typedef struct bm_hot_source {
    const char *const *words; /* each "WORDS" or "WORDS=BOOST" */
    size_t n_words;
    const char *path; /* of a file with one on each line; NULL: none */
    double boost;     /* of those that have none */
    const bm_vocab *vocab;
    int32_t space;             /* the class of the space; -1: none */
    const bm_lexicon *lexicon; /* NULL: none */
} bm_hot_source;

/* *out <- an automaton of them, or unchanged if there are none. Fails with
 * BM_ERR_ARG or BM_ERR_FORMAT and the hot word that cannot be spelled, as
 * bm_file_read, and with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_hot_read(bm_hot_words **out, const bm_hot_source *s);

#endif
