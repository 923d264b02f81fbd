#include "io/text.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { LONGEST = 4 }; /* bytes of a code point */

static bool is_letter(utf8proc_int32_t c)
{
    utf8proc_category_t kind = utf8proc_category(c);

    return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

static bool is_punctuation(utf8proc_int32_t c)
{
    utf8proc_category_t kind = utf8proc_category(c);

    return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

static bool is_apostrophe(utf8proc_int32_t c)
{
    return c == '\'' || c == 0x2019;
}

static bool is_seen(utf8proc_int32_t c)
{
    enum { NON_JOINER = 0x200c, JOINER = 0x200d };
    utf8proc_category_t kind = utf8proc_category(c);

    return c == ' ' || c == NON_JOINER || c == JOINER ||
           kind < UTF8PROC_CATEGORY_ZS || kind > UTF8PROC_CATEGORY_CF;
}

/* The code point at *at, which moves past it; 0 at the end, -1: not UTF-8. */
static utf8proc_int32_t next(const utf8proc_uint8_t **at)
{
    utf8proc_int32_t c = 0;
    utf8proc_ssize_t n = utf8proc_iterate(*at, -1, &c);

    if (**at == '\0')
        return 0;
    if (n <= 0)
        return -1;
    *at += n;
    return c;
}

static utf8proc_int32_t ruled(const bm_text_rules *rules,
                              utf8proc_int32_t before, utf8proc_int32_t c,
                              utf8proc_int32_t after)
{
    if (rules->punctuation && is_apostrophe(c) && is_letter(before) &&
        after > 0 && is_letter(after))
        return '\'';
    if (rules->punctuation && is_punctuation(c))
        return ' ';
    return rules->lower ? utf8proc_tolower(c) : c;
}

static bm_status check(const char *text)
{
    const utf8proc_uint8_t *at = (const utf8proc_uint8_t *)text;
    utf8proc_int32_t c = 0;

    while ((c = next(&at)) > 0)
        ;
    if (c < 0)
        return BM_FAIL(BM_ERR_FORMAT, "\"%.60s\" is not UTF-8 at byte %zu",
                       text, (size_t)((const char *)at - text));
    return BM_OK;
}

/* Code point by code point: a lower one may be longer. */
static void change(const bm_text_rules *rules, const char *text, char *out)
{
    const utf8proc_uint8_t *at = (const utf8proc_uint8_t *)text;
    utf8proc_uint8_t *to = (utf8proc_uint8_t *)out;
    utf8proc_int32_t before = ' ', c = 0;

    while ((c = next(&at)) > 0) {
        const utf8proc_uint8_t *ahead = at;

        to += utf8proc_encode_char(ruled(rules, before, c, next(&ahead)), to);
        before = c;
    }
    *to = '\0';
}

static bm_status compose(const char *text, bool compatible, char **out)
{
    utf8proc_uint8_t *composed = NULL;
    utf8proc_option_t options =
        UTF8PROC_NULLTERM | UTF8PROC_STABLE | UTF8PROC_COMPOSE |
        (compatible ? UTF8PROC_COMPAT : UTF8PROC_NULLTERM);
    utf8proc_ssize_t n =
        utf8proc_map((const utf8proc_uint8_t *)text, 0, &composed, options);

    if (n == UTF8PROC_ERROR_NOMEM)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a text");
    if (n < 0)
        return BM_FAIL(BM_ERR_FORMAT, "\"%.60s\" cannot be normalised: %s",
                       text, utf8proc_errmsg(n));
    *out = (char *)composed;
    return BM_OK;
}

/* *out <- the text in lower case and without punctuation; free(*out). */
static bm_status rule(const bm_text_rules *rules, const char *text, char **out)
{
    *out = malloc(LONGEST * strlen(text) + 1);
    if (*out == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a text");
    change(rules, text, *out);
    return BM_OK;
}

/* Letters and accents are composed first, so that an apostrophe stands between
 * letters, and again, as lower case may be decomposed. */
bm_status bm_text_apply(const bm_text_rules *rules, const char *text,
                        char **out)
{
    bool compatible = rules->form == BM_TEXT_NFKC;
    char *composed = NULL, *ruled = NULL;
    bm_status status = BM_OK;

    BM_TRY(check(text));
    if (rules->form == BM_TEXT_AS_IS)
        return rule(rules, text, out);
    BM_TRY(compose(text, compatible, &composed));
    BM_TRY_DONE(rule(rules, composed, &ruled));
    status = compose(ruled, compatible, out);
done:
    free(composed);
    free(ruled);
    return status;
}

long bm_text_unseen(const char *text)
{
    const utf8proc_uint8_t *at = (const utf8proc_uint8_t *)text;
    utf8proc_int32_t c = 0;

    while ((c = next(&at)) > 0)
        if (!is_seen(c))
            return c;
    return 0;
}
