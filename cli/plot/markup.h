/* markup.h - texts that are written into HTML and SVG. Nothing here fails. */
#ifndef BM_CLI_PLOT_MARKUP_H
#define BM_CLI_PLOT_MARKUP_H

#include <stddef.h>
#include <stdio.h>

/* Writes a text with & < > " ' escaped. Control characters and bytes that are
 * not UTF-8, which no document may have, are written as core/text/printable.h
 * does. */
void bm_markup(FILE *f, const char *text);

/* The same for formatted text, cut at 1000 characters. */
void bm_markup_format(FILE *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Characters of a UTF-8 text. */
size_t bm_markup_length(const char *text);

#endif
