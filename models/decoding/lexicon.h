/*
 * lexicon.h - words and how they are spelled, as a tree of labels. Node 0 is the
 * root. A word may have several spellings, and a spelling may be that of several
 * words. Words and spellings are numbered from 0, spellings in the order of their
 * labels.
 */
#ifndef BM_MODELS_DECODING_LEXICON_H
#define BM_MODELS_DECODING_LEXICON_H

#include "io/vocab.h"
#include "models/decoding/lm.h"

/* Children of a node are nodes [child, child + children), sorted by label; its
 * words are spellings [spelling, spelling + spellings). */
typedef struct bm_lexicon_node {
    uint32_t parent, child, children, spelling, spellings;
    int32_t label;
} bm_lexicon_node;

typedef struct bm_lexicon {
    bm_lexicon_node *nodes; /* [n_nodes], parents before children */
    size_t n_nodes;
    char **texts; /* [n_words] */
    size_t n_words;
    uint32_t *words; /* [n_spellings]: of which word it is one */
    uint32_t *ends;  /* [n_spellings]: its last node */
    size_t n_spellings;
} bm_lexicon;

/* A word with one of its spellings, to make a lexicon of. */
typedef struct bm_lexicon_entry {
    char *text;      /* owned */
    int32_t *labels; /* [n], owned */
    size_t n;
    uint32_t word; /* of bm_lexicon_build */
} bm_lexicon_entry;

typedef struct bm_lexicon_list {
    bm_lexicon_entry *entries;
    size_t n, room;
} bm_lexicon_list;

/*
 * Reads a file with a word in each line, and, after white space, the symbols of
 * its spelling; without them it is spelled by its characters. Spellings with
 * symbols that the vocabulary lacks are left out with a warning. Close with
 * bm_lexicon_free; NULL is a no-op. Fails with BM_ERR_MISSING, BM_ERR_IO,
 * BM_ERR_MEMORY, or BM_ERR_FORMAT if a line is not UTF-8 or no word is left.
 */
BM_CHECKED bm_status bm_lexicon_read(bm_lexicon **out, const char *path,
                                     const bm_vocab *vocab);

/* The words of a language model, spelled by their characters. path: of the model,
 * for messages. */
BM_CHECKED bm_status bm_lexicon_of_lm(bm_lexicon **out, const bm_lm *lm,
                                      const char *path, const bm_vocab *vocab);
void bm_lexicon_free(bm_lexicon *l);

/* *out <- a word to be spelled: with nfc, for a vocabulary in Unicode's form C, in
 * this form, as texts are packed. What is not UTF-8 stays; no symbol is like it.
 * free(*out). Fails only with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_lexicon_compose(const char *word, bool nfc, char **out);

/* Appends a word, spelled by n labels. Copies both. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_lexicon_list_add(bm_lexicon_list *list,
                                         const char *text,
                                         const int32_t *labels, size_t n);
void bm_lexicon_list_free(bm_lexicon_list *list);

/* Makes a lexicon of a list of one or more, and takes its texts. Entries
 * without labels and repeated ones are ignored. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_lexicon_build(bm_lexicon **out, bm_lexicon_list *list);

/* The child with this label, or 0. */
uint32_t bm_lexicon_child(const bm_lexicon *l, uint32_t node, int32_t label);

/* Writes the labels of a spelling unless labels is NULL; returns their number. */
size_t bm_lexicon_spelling(const bm_lexicon *l, size_t spelling,
                           int32_t *labels);

#endif
