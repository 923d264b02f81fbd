/* printable.c - escapes control characters, and bytes that are not UTF-8. */
#include "core/text/printable.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

size_t bm_utf8_character(const char *text, int32_t *code)
{
    utf8proc_int32_t c = 0;
    utf8proc_ssize_t n =
        utf8proc_iterate((const utf8proc_uint8_t *)text, -1, &c);

    if (n <= 0)
        return 0;
    if (code != NULL)
        *code = c;
    return (size_t)n;
}

size_t bm_utf8_length(const char *text)
{
    size_t i = 0, n = 0;

    while (text[i] != '\0' && (n = bm_utf8_character(text + i, NULL)) > 0)
        i += n;
    return i;
}

bool bm_is_utf8(const char *text)
{
    return text[bm_utf8_length(text)] == '\0';
}

/* ASCII's and Unicode's controls (C0, C1, DEL), and those that reorder or end
 * lines. */
static bool is_control(int32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* Writes the next character to `one`; returns its bytes in the text. */
static size_t next(const char *text, char one[20])
{
    const unsigned char *s = (const unsigned char *)text;
    int32_t code = 0;
    size_t n = bm_utf8_character(text, &code), at = 0;

    if (n > 0 && !is_control(code)) {
        memcpy(one, text, n);
        one[n] = '\0';
        return n;
    }
    n = n > 0 ? n : 1;
    if (*text == '\n' || *text == '\t')
        snprintf(one, 20, "\\%c", *text == '\n' ? 'n' : 't');
    else
        for (size_t i = 0; i < n; i++)
            at += (size_t)snprintf(one + at, 20 - at, "\\x%02x", s[i]);
    return n;
}

static const char *escape(const char *text, bool lines, char *out, size_t room)
{
    static const char more[] = "...";
    size_t at = 0, cut = 0; /* where "..." fits */
    char one[20];

    while (*text != '\0') {
        size_t length = 0;

        if (lines && *text == '\n') {
            snprintf(one, sizeof one, "\n");
            text++;
        } else {
            text += next(text, one);
        }
        length = strlen(one);
        if (at + length >= room) {
            memcpy(out + cut, more, sizeof more);
            return out;
        }
        memcpy(out + at, one, length);
        at += length;
        if (at + sizeof more <= room)
            cut = at;
    }
    out[at] = '\0';
    return out;
}

size_t bm_utf8_cut(const char *text, size_t at)
{
    while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    return at;
}

size_t bm_utf8_mark(const char *text)
{
    return strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

const char *bm_printable(const char *text, char *out, size_t room)
{
    return escape(text, false, out, room);
}

const char *bm_printable_lines(const char *text, char *out, size_t room)
{
    return escape(text, true, out, room);
}

char *bm_printable_copy(const char *text)
{
    size_t room = 4 * strlen(text) + 8;
    char *out = malloc(room);

    if (out != NULL)
        bm_printable(text, out, room);
    return out;
}
