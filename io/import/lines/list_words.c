#include "io/import/lines/list_words.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

static const char unknown[] = "<unk>", blanks[] = " \t\r", ends[] = " \t\r\n";

/* U+FFFD, a character that Unicode has for those that are unknown. */
static const char replacement[] = "\xef\xbf\xbd";

static bool combines(utf8proc_int32_t code)
{
    utf8proc_category_t c = utf8proc_category(code);

    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC ||
           c == UTF8PROC_CATEGORY_ME;
}

/* Bytes of the UTF-8 character at text, with the marks that combine with it. */
static size_t character(const char *text)
{
    size_t n = 0;

    for (;;) {
        utf8proc_int32_t code = 0;
        utf8proc_ssize_t bytes =
            utf8proc_iterate((const utf8proc_uint8_t *)text + n, -1, &code);

        if (bytes < 1)
            return n > 0 ? n : 1; /* not UTF-8, which is found later */
        if (n > 0 && !combines(code))
            return n;
        n += (size_t)bytes;
    }
}

static bool is(const char *word, size_t n, const char *name)
{
    return n == strlen(name) && strncmp(word, name, n) == 0;
}

/* PyLaia's own name of a blank, and that of its examples. */
static bool is_space(const char *word, size_t n)
{
    return is(word, n, "<space>") || is(word, n, "<sp>");
}

void bm_list_words_add(bm_list_words *w, const char *text)
{
    const char *at = text + strspn(text, blanks);

    for (; *at != '\0' && *at != '\n'; at += strspn(at, blanks)) {
        size_t n = strcspn(at, ends);
        bool named = at[0] == '<' && n > 2 && at[n - 1] == '>';

        if (is_space(at, n))
            w->spaced = true;
        w->characters += named || character(at) >= n;
        w->n++;
        at += n;
    }
}

void bm_list_words_add_lines(bm_list_words *w, const char *lines)
{
    while (*lines != '\0') {
        const char *id = lines + strspn(lines, blanks);

        if (*id != '#')
            bm_list_words_add(w, id + strcspn(id, ends));
        lines += strcspn(lines, "\n");
        lines += *lines != '\0';
    }
}

/* Returns a word that is no character, with what is after it; NULL: there is
 * none. */
static const char *join(char *text)
{
    char *to = text, *at = text;

    for (at += strspn(at, blanks); *at != '\0'; at += strspn(at, blanks)) {
        size_t n = strcspn(at, blanks);

        if (is_space(at, n))
            *to++ = ' ';
        else if (is(at, n, unknown))
            to = (char *)memcpy(to, replacement, sizeof replacement - 1) +
                 sizeof replacement - 1;
        else if (character(at) == n)
            to = (char *)memmove(to, at, n) + n;
        else
            return at;
        at += n;
    }
    *to = '\0';
    return NULL;
}

bool bm_list_words_join(char *text, char fault[BM_LIST_FAULT])
{
    const char *odd = join(text);
    size_t n = odd != NULL ? strcspn(odd, blanks) : 0;

    if (odd == NULL)
        return true;
    snprintf(fault, BM_LIST_FAULT,
             "'%.*s' is not one character, as the words of other lines are; a "
             "blank is <space> or <sp>",
             (int)(n < 60 ? n : 60), odd);
    return false;
}
