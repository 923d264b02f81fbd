/* shell_word.h - paths in commands that messages show, as a shell takes them:
 * bm_log(BM_NOTE, "bmuf eval %s", bm_shell_word(path).text). */
#ifndef BM_CORE_TEXT_SHELL_WORD_H
#define BM_CORE_TEXT_SHELL_WORD_H

#include <limits.h>
#include <stdbool.h>

typedef struct bm_shell_text {
    char text[PATH_MAX + 64];
} bm_shell_text;

/* The word, in quotes if a shell needs them; cut if it is longer than a path. */
bm_shell_text bm_shell_word(const char *word);

/* Does a shell take the word as it is, without quotes? */
bool bm_shell_is_plain(const char *word);

#endif
