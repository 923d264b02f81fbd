#include "io/symbol_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names that other programs give the blank, class 0 of their tables. */
static const char *const blanks[] = {"<eps>", "<blk>", "<ctc>", "<blank>"};

bool bm_symbol_table_is(const char *text)
{
    size_t n = strcspn(text, " \t\r\n");
    const char *number = text + n + strspn(text + n, " \t");

    if (number == text + n || number[0] != '0' ||
        number[1 + strspn(number + 1, " \t\r")] != '\n')
        return false;
    for (size_t i = 0; i < sizeof blanks / sizeof blanks[0]; i++)
        if (strlen(blanks[i]) == n && strncmp(blanks[i], text, n) == 0)
            return true;
    return false;
}

/* Symbols that graphs need, and texts do not have: "#0", "<s>". */
static bool is_auxiliary(const char *symbol, size_t n)
{
    return (n > 1 && symbol[0] == '#' &&
            strspn(symbol + 1, "0123456789") >= n - 1) ||
           (n == 3 && strncmp(symbol, "<s>", n) == 0) ||
           (n == 4 && strncmp(symbol, "</s>", n) == 0);
}

/* Leaves the symbols, one a line, in place, without the auxiliary ones at the
 * end. */
static bm_status keep_symbols(char *text, const char *path)
{
    char *to = text, *end = text; /* end: after the last symbol that is kept */
    size_t line = 0;

    for (char *at = text; *at != '\0'; line++) {
        size_t length = strcspn(at, "\n"), n = strcspn(at, " \t\r\n");
        char *next = at + length + (at[length] == '\n'), *stop = NULL;
        unsigned long number = strtoul(at + n, &stop, 10);

        if (n == 0 || n == length || stop == at + n || number != line ||
            strspn(stop, " \t\r") != (size_t)(at + length - stop))
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s:%zu: not \"SYMBOL %zu\"; the numbers of a "
                           "symbol table are 0, 1, 2 ..",
                           path, line + 1, line);
        memmove(to, at, n);
        if (!is_auxiliary(to, n))
            end = to + n + 1;
        to += n;
        *to++ = '\n'; /* there was a number after the symbol */
        at = next;
    }
    *end = '\0';
    return BM_OK;
}

bm_status bm_symbol_table_convert(char **out, char *text, const char *blank,
                                  const char *path)
{
    size_t name = 0, size = 0;

    BM_TRY(keep_symbols(text, path));
    name = strcspn(text, "\n");
    size = strlen(blank) + strlen(text + name) + 1;
    *out = malloc(size);
    if (*out == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", path);
    snprintf(*out, size, "%s%s", blank, text + name);
    return BM_OK;
}
