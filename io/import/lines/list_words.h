/*
 * list_words.h - the words of PyLaia's lists, "id t h e <space> t e x t", which
 * are characters: <space> or <sp> is a blank, <unk> a character that is none of
 * PyLaia's symbols.
 */
#ifndef BM_IO_IMPORT_LINES_LIST_WORDS_H
#define BM_IO_IMPORT_LINES_LIST_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* What the words are. Starts as {0}. */
typedef struct bm_list_words {
    bool spaced;          /* <space> or <sp> is among them */
    size_t n, characters; /* characters: those of one character, or in <> */
} bm_list_words;

/* Adds the words of a text, which ends with '\n' or '\0'. */
void bm_list_words_add(bm_list_words *w, const char *text);

/* Adds the words of all lines, after their ids; '#' begins a comment line. */
void bm_list_words_add_lines(bm_list_words *w, const char *lines);

enum { BM_LIST_FAULT = 160 };

/* Joins the characters of a text in place, <unk> as U+FFFD. False: a word is not
 * a character; fault <- which one. */
bool bm_list_words_join(char *text, char fault[BM_LIST_FAULT]);

#endif
