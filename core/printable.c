/* printable.c - escapes control characters, and bytes that are not UTF-8. */
#include "core/printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the UTF-8 character that the text begins with (RFC 3629: no longer
 * forms than needed, no surrogates); 0: it is none. */
static size_t character(const unsigned char *s, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80             ? 1
               : (s[0] & 0xe0) == 0xc0 ? 2
               : (s[0] & 0xf0) == 0xe0 ? 3
               : (s[0] & 0xf8) == 0xf0 ? 4
                                       : 0;

    *code = n <= 1 ? s[0] : s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (s[i] & 0x3f);
    }
    if (n > 1 && (*code < least[n] || *code > 0x10ffff ||
                  (*code >= 0xd800 && *code <= 0xdfff)))
        return 0;
    return n;
}

bool bm_is_utf8(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    uint32_t code = 0;
    size_t n = 0;

    for (; *s != '\0'; s += n)
        if ((n = character(s, &code)) == 0)
            return false;
    return true;
}

/* ASCII's and Unicode's controls (C0, C1, DEL), and those that reorder or end
 * lines. */
static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* Writes the next character to `one`; returns its bytes in the text. */
static size_t next(const char *text, char one[20])
{
    const unsigned char *s = (const unsigned char *)text;
    uint32_t code = 0;
    size_t n = character(s, &code), at = 0;

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
