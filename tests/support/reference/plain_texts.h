/*
 * plain_texts.h - what a language adds to the score of a text, as plainly as it can
 * be: a text is read from its beginning. A reference for tests of the beam search;
 * the formulas are those of docs/results/language-models.md.
 *
 * A text has a character for each label, and "<WORD>" behind a label that ends a
 * word of the lexicon, or another word.
 */
#ifndef BM_TESTS_SUPPORT_REFERENCE_PLAIN_TEXTS_H
#define BM_TESTS_SUPPORT_REFERENCE_PLAIN_TEXTS_H

#include "models/decoding/language.h"
#include "models/decoding/lm.h"

#include <stdbool.h>

enum { TEXT = 2048 }; /* room for a text */

typedef struct spelling {
    const char *word, *labels;
} spelling;

/* A hot word as it is spelled, with a space between its words. */
typedef struct phrase {
    const char *labels;
    double boost;
} phrase;

/* A language, for the program and for the reference. */
typedef struct rig {
    const char
        *labels; /* of the classes, one character each; "-" is the blank */
    bm_vocab *vocab;
    bm_language_settings set;
    bm_language *language; /* NULL: none */
    bm_lm *lm;             /* NULL: none */
    const spelling *lexicon;
    size_t n_spellings; /* 0: no lexicon */
    const phrase *hot;
    size_t n_hot;
} rig;

/* Texts that follow a text. */
typedef struct text_list {
    char texts[8][TEXT];
    size_t n;
} text_list;

/* The class of a label. */
size_t class_of(const rig *r, char label);

char last_label(const char *text); /* 0: it has none */

/* *labels <- the labels of a text without its words. */
void strip(const char *text, char *labels);

/* Are spaces behind this label as one? 0: at the beginning. */
bool merges_spaces(const rig *r, char label);

/* What the language adds to a text. */
double language_score(const rig *r, const char *text);

/* The same for a text that has ended; words <- its words, each followed by a
 * space. */
double final_score(const rig *r, const char *text, char *words);

/* *out <- the text with one more label, in all ways. */
void follow(const rig *r, const char *text, char label, text_list *out);

/* *out <- the text with its end, in all ways; `incomplete`: no word of the lexicon
 * has to end there. */
void finish(const rig *r, const char *text, bool incomplete, text_list *out);

#endif
