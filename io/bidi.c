#include "io/bidi.h"

#include "core/text/printable.h"

#include <fribidi.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The length in bytes of the first character of a text that is not empty; *code
 * <- U+FFFD for a byte that is not UTF-8. */
static size_t first_character(const char *text, FriBidiChar *code)
{
    int32_t c = 0;
    size_t n = bm_utf8_character(text, &c);

    *code = n > 0 ? (FriBidiChar)c : 0xfffd;
    return n > 0 ? n : 1;
}

long bm_text_letters_left(const char *text)
{
    FriBidiChar code = 0;
    long n = 0;

    while (*text != '\0') {
        FriBidiCharType type = 0;

        text += first_character(text, &code);
        type = fribidi_get_bidi_type(code);
        if (FRIBIDI_IS_LETTER(type))
            n += FRIBIDI_IS_RTL(type) ? 1 : -1;
    }
    return n;
}

/* Characters of a line, and what UAX #9 says of them. */
typedef struct line {
    FriBidiStrIndex n;
    FriBidiChar *code;
    FriBidiCharType *type;
    FriBidiBracketType *bracket;
    FriBidiLevel *level; /* even: from left to right */
} line;

static bm_status make_line(line *l, const char *text)
{
    size_t most = strlen(text) + 1;

    *l = (line){0};
    if (most > INT_MAX)
        return BM_FAIL(BM_ERR_MEMORY, "a text of %zu bytes is too long", most);
    l->code = calloc(most, sizeof *l->code);
    l->type = calloc(most, sizeof *l->type);
    l->bracket = calloc(most, sizeof *l->bracket);
    l->level = calloc(most, sizeof *l->level);
    if (!l->code || !l->type || !l->bracket || !l->level)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a text");
    while (*text != '\0')
        text += first_character(text, &l->code[l->n++]);
    return BM_OK;
}

static void free_line(line *l)
{
    free(l->code);
    free(l->type);
    free(l->bracket);
    free(l->level);
}

/* Left to right if all letters are; a line without letters is from right to left. */
static FriBidiParType direction(const line *l)
{
    bool latin = false;

    for (FriBidiStrIndex k = 0; k < l->n; k++)
        if (FRIBIDI_IS_LETTER(l->type[k])) {
            if (FRIBIDI_IS_RTL(l->type[k]))
                return FRIBIDI_PAR_RTL;
            latin = true;
        }
    return latin ? FRIBIDI_PAR_LTR : FRIBIDI_PAR_RTL;
}

/* Digits whose next letter is Latin count as Latin, as rule W7 has it for those
 * whose last one is. */
static void join_digits_to_the_next_word(line *l)
{
    bool latin = false;

    for (FriBidiStrIndex k = l->n; k-- > 0;)
        if (FRIBIDI_IS_LETTER(l->type[k]))
            latin = !FRIBIDI_IS_RTL(l->type[k]);
        else if (latin && l->type[k] == FRIBIDI_TYPE_EN)
            l->type[k] = FRIBIDI_TYPE_LTR;
}

bm_status bm_text_runs_right(const char *text, bool join, bool *runs_right)
{
    FriBidiParType base = FRIBIDI_PAR_RTL;
    FriBidiChar code = 0;
    line l;
    bm_status status = BM_OK;

    BM_TRY_DONE(make_line(&l, text));
    fribidi_get_bidi_types(l.code, l.n, l.type);
    fribidi_get_bracket_types(l.code, l.n, l.type, l.bracket);
    base = direction(&l);
    if (join)
        join_digits_to_the_next_word(&l);
    if (l.n > 0 && fribidi_get_par_embedding_levels_ex(l.type, l.bracket, l.n,
                                                       &base, l.level) == 0)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for the levels of a text");
    for (FriBidiStrIndex k = 0; k < l.n; k++)
        for (size_t n = first_character(text, &code); n > 0; n--, text++)
            *runs_right++ = l.level[k] % 2 == 0;
done:
    free_line(&l);
    return status;
}
