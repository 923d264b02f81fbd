/* printable.h - texts from files, made safe to print: a terminal obeys control
 * characters. Nothing here fails or allocates. */
#ifndef BM_CORE_PRINTABLE_H
#define BM_CORE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

bool bm_is_utf8(const char *text);

/* out [room] <- the text with control characters and bytes that are not UTF-8
 * written as "\x1b", and "\n" and "\t"; cut between characters to fit, then
 * ending with "...". room >= 8. Returns out. */
const char *bm_printable(const char *text, char *out, size_t room);

/* The same for messages of several lines: "\n" stays. */
const char *bm_printable_lines(const char *text, char *out, size_t room);

/* bm_printable with as much room as needed; free() it. NULL without memory. */
char *bm_printable_copy(const char *text);

#endif
