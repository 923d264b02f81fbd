/* printable.h - texts from files: whether they are UTF-8, and made safe to
 * print, as a terminal obeys control characters. */
#ifndef BM_CORE_TEXT_PRINTABLE_H
#define BM_CORE_TEXT_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number of bytes of the text's first character, 1 if the text is empty; 0 if
 * they are not UTF-8 (RFC 3629). *code <- the character, unless code is NULL. */
size_t bm_utf8_character(const char *text, int32_t *code);

/* The bytes of the text before the first that is not UTF-8, or its length. */
size_t bm_utf8_length(const char *text);
bool bm_is_utf8(const char *text);

/* Where to cut a UTF-8 text: the last byte up to `at` that begins a character. */
size_t bm_utf8_cut(const char *text, size_t at);

/* The bytes of the byte order mark that some editors write before a text: 3, or
 * 0. */
size_t bm_utf8_mark(const char *text);

/* out [room] <- the text with control characters and bytes that are not UTF-8
 * written as "\x1b", and "\n" and "\t"; cut between characters to fit, then
 * ending with "...". room >= 8. Returns out. */
const char *bm_printable(const char *text, char *out, size_t room);

/* The same for messages of several lines: "\n" stays. */
const char *bm_printable_lines(const char *text, char *out, size_t room);

/* bm_printable with as much room as needed; free() it. NULL without memory. */
char *bm_printable_copy(const char *text);

#endif
