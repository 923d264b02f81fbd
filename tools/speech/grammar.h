/*
 * grammar.h - the English of bmuf_speech: a context-free grammar of some 600
 * words, from which texts are drawn. No two of its words sound alike.
 *
 *     bm_grammar_draw("everything", &rng, text, sizeof text);
 *
 * Nothing here fails.
 */
#ifndef BM_TOOLS_SPEECH_GRAMMAR_H
#define BM_TOOLS_SPEECH_GRAMMAR_H

#include "core/rng.h"

#include <stddef.h>

/* The languages: the values of --language. */
#define BM_LANGUAGES "everything sentences numbers spelling digits"

enum { BM_LONGEST_TEXT = 400 }; /* bytes of a text, the '\0' included */

/* Draws a text of a language: words in lower case, joined by single blanks. A
 * single letter is the letter that is spelled, never a word. */
void bm_grammar_draw(const char *language, bm_rng *rng,
                     char text[BM_LONGEST_TEXT]);

/* Calls visit(self, word) with every word that the texts of a language can
 * have; more than once for a word that is in several places. */
void bm_grammar_words(const char *language,
                      void (*visit)(void *self, const char *word), void *self);

#endif
