#include "core/text/shell_word.h"

#include <stdio.h>
#include <string.h>

bool bm_shell_is_plain(const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        "-_=+.,:/@%";

    return word[0] != '\0' && word[strspn(word, plain)] == '\0';
}

bm_shell_text bm_shell_word(const char *word)
{
    bm_shell_text out = {""};
    size_t n = 1;

    if (bm_shell_is_plain(word)) {
        snprintf(out.text, sizeof out.text, "%s", word);
        return out;
    }
    out.text[0] = '\'';
    for (; *word != '\0' && n + 6 < sizeof out.text; word++)
        if (*word == '\'')
            n += (size_t)snprintf(out.text + n, sizeof out.text - n, "'\\''");
        else
            out.text[n++] = *word;
    out.text[n] = '\'';
    return out;
}
