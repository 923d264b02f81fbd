/*
 * texts.h - what `bmuf pack` makes labels of texts with, and what follows from
 * the data set or the model of --vocab.
 */
#ifndef BM_CLI_PACK_TEXTS_H
#define BM_CLI_PACK_TEXTS_H

#include "cli/arguments.h"
#include "io/vocab.h"

/* Starts as {0}; free with bm_texts_free. */
typedef struct bm_texts {
    bm_vocab *vocab;
    bool learned;        /* the vocabulary is empty, to be made of the texts */
    bool recorded;       /* shards or a model say what its symbols are */
    const char *form;    /* how texts are normalised: "nfc", "none"; static */
    char *features_text; /* how the features of --vocab were made; NULL: not
                            known */
    char *normalised;    /* the last text */
} bm_texts;

/* Reads --vocab, of a run that of its model, --units and --text. Shards record
 * whether their symbols are words and how texts were normalised, and a model the
 * former; a text file does not. `words`: the units if nothing says what they are.
 * Fails with BM_ERR_ARG if the options contradict them, and as reading a
 * vocabulary, shard or model does. */
BM_CHECKED bm_status bm_texts_open(bm_texts *t, const bm_arguments *a,
                                   bool words);
void bm_texts_free(bm_texts *t);

/* Normalises a text as all are. *out is borrowed until the next call. Fails
 * with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_texts_normalise(bm_texts *t, const char *text,
                                        const char **out);

#endif
