#include "cli/plot/markup.h"

#include "core/text/printable.h"

#include <stdarg.h>
#include <stdlib.h>

static const char *entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void bm_markup(FILE *f, const char *text)
{
    char *safe = bm_printable_copy(text);

    for (const char *c = safe; c != NULL && *c != '\0'; c++)
        if (entity(*c) != NULL)
            fputs(entity(*c), f);
        else
            fputc(*c, f);
    free(safe);
}

void bm_markup_format(FILE *f, const char *format, ...)
{
    char text[1000];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    bm_markup(f, text);
}

size_t bm_markup_length(const char *text)
{
    size_t n = 0;

    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}
