#include "io/symbol_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names that other programs give the blank, class 0 of their tables. */
static const char *const blanks[] = {"<eps>", "<blk>", "<ctc>", "<blank>"};

/* A name of the space among characters, and what vocabularies call it. */
static const char short_space[] = "<sp>", space[] = "<space>";

/* A symbol inside a text; NULL: there is none yet. */
typedef struct symbol {
    const char *at;
    size_t n;
} symbol;

bool bm_symbol_table_is(const char *text)
{
    size_t n = strcspn(text, " \t\r\n");
    const char *number = text + n + strspn(text + n, " \t");
    size_t digits = strspn(number, "0123456789");

    return n > 0 && number > text + n && digits > 0 &&
           number[digits + strspn(number + digits, " \t\r")] == '\n';
}

static bool is(symbol s, const char *name)
{
    return s.at != NULL && strlen(name) == s.n && strncmp(name, s.at, s.n) == 0;
}

static bool is_blank(symbol s)
{
    for (size_t i = 0; i < sizeof blanks / sizeof blanks[0]; i++)
        if (is(s, blanks[i]))
            return true;
    return false;
}

/* Symbols that graphs need, and texts do not have: "#0", "<s>". */
static bool is_auxiliary(symbol s)
{
    return (s.n > 1 && s.at[0] == '#' &&
            strspn(s.at + 1, "0123456789") >= s.n - 1) ||
           is(s, "<s>") || is(s, "</s>");
}

static size_t count_lines(const char *text)
{
    size_t n = 0;

    for (; *text != '\0'; n++) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return n;
}

/* of [n] <- the symbols by their numbers, which may be in any order. */
static bm_status number_symbols(symbol *of, size_t n, const char *text,
                                const char *path)
{
    size_t line = 0;

    for (const char *at = text; *at != '\0';) {
        size_t length = strcspn(at, "\n"), end = strcspn(at, " \t\r\n");
        char *stop = NULL;
        unsigned long number = strtoul(at + end, &stop, 10);

        line++;
        if (end == 0 || end == length || stop == at + end ||
            strspn(stop, " \t\r") != (size_t)(at + length - stop))
            return BM_FAIL(
                BM_ERR_FORMAT,
                "%s:%zu: not \"SYMBOL NUMBER\", as lines of a symbol "
                "table are",
                path, line);
        if (number >= n || of[number].at != NULL)
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s:%zu: number %lu %s; number the %zu symbols of "
                           "the table from 0 to %zu, without gaps",
                           path, line, number,
                           number >= n ? "is too high" : "was there before", n,
                           n - 1);
        of[number] = (symbol){at, end};
        at += length + (at[length] == '\n');
    }
    return BM_OK;
}

/* Without the auxiliary ones at the end. */
static size_t count_kept(const symbol *of, size_t n)
{
    while (n > 1 && is_auxiliary(of[n - 1]))
        n--;
    return n;
}

/* `to` has room for the text, `blank` and `space`. */
static void print_symbols(char *to, const symbol *of, size_t n,
                          const char *blank, bool words)
{
    bool spaced = words; /* or there is a <space> */

    for (size_t k = 1; k < n; k++)
        spaced = spaced || is(of[k], space);
    to += sprintf(to, "%s\n", blank);
    for (size_t k = 1; k < n; k++)
        if (!spaced && is(of[k], short_space))
            to += sprintf(to, "%s\n", space);
        else
            to += sprintf(to, "%.*s\n", (int)of[k].n, of[k].at);
}

bm_status bm_symbol_table_convert(char **out, const char *text,
                                  const char *blank, bool words,
                                  const char *path)
{
    size_t n = count_lines(text);
    symbol *of = calloc(n + 1, sizeof *of);
    bm_status status = BM_OK;

    if (of == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", path);
    BM_TRY_DONE(number_symbols(of, n, text, path));
    if (!is_blank(of[0]))
        BM_FAIL_DONE(BM_ERR_FORMAT,
                     "%s: symbol 0 is \"%.*s\"; it must be the blank: <eps>, "
                     "<blk>, <ctc> or <blank>",
                     path, (int)(of[0].n < 60 ? of[0].n : 60), of[0].at);
    *out = malloc(strlen(text) + strlen(blank) + n * sizeof space);
    if (*out == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %s", path);
    print_symbols(*out, of, count_kept(of, n), blank, words);
done:
    free(of);
    return status;
}
