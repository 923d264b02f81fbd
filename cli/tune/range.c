#include "cli/tune/range.h"

#include "core/text/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const scales[] = {
#define X(name) #name,
    BM_AXIS_SCALES(X)
#undef X
};

/* NULL: there is no such setting. */
const bm_option *bm_axis_option(const bm_section *sections, const char *name)
{
    size_t n = strcspn(name, ".");

    for (const bm_section *s = sections; s->name != NULL; s++) {
        if (strlen(s->name) != n || strncmp(s->name, name, n) != 0 ||
            name[n] != '.')
            continue;
        for (const bm_option *o = s->options; o->key != NULL; o++)
            if (strcmp(o->key, name + n + 1) == 0)
                return o;
    }
    return NULL;
}

static bool is_number(const bm_option *o)
{
    return o->type == BM_INT || o->type == BM_FLOAT || o->type == BM_AUTO ||
           o->type == BM_SERIES;
}

/* Sizes are integers, also as a series. */
static bool is_integer(const bm_option *o)
{
    return o->type == BM_INT || (o->type == BM_SERIES && o->unit != NULL);
}

/* "low..high[:scale]"; *end: where its numbers end. */
static bool has_range(const char *text, double *low, double *high,
                      const char **end)
{
    char *at = NULL;

    *low = strtod(text, &at);
    /* strtod takes the first dot of "5..200" for a decimal point */
    if (at > text && at[-1] == '.' && at[0] == '.')
        at--;
    if (at == text || strncmp(at, "..", 2) != 0)
        return false;
    text = at + 2;
    *high = strtod(text, &at);
    *end = at;
    return at > text && (*at == '\0' || *at == ':');
}

static bm_status set_scale(bm_axis *a, const char *text, const char *word)
{
    a->scale = a->low > 0 ? BM_AXIS_log : BM_AXIS_linear;
    if (*word == ':') {
        int k = 0;

        for (word++; k <= BM_AXIS_logit && strcmp(word, scales[k]) != 0;)
            k++;
        if (k > BM_AXIS_logit)
            return BM_FAIL(BM_ERR_CONFIG,
                           "%s: unknown scale %s; use log, linear or logit",
                           text, word);
        a->scale = (bm_axis_scale)k;
    }
    if (!(a->low < a->high))
        return BM_FAIL(BM_ERR_CONFIG, "%s: %g is not below %g", text, a->low,
                       a->high);
    if (a->scale == BM_AXIS_log && !(a->low > 0))
        return BM_FAIL(BM_ERR_CONFIG, "%s: a log scale begins above 0", text);
    if (a->scale == BM_AXIS_logit && !(a->low > 0 && a->high < 1))
        return BM_FAIL(BM_ERR_CONFIG, "%s: a logit scale is within 0 and 1",
                       text);
    return BM_OK;
}

static bm_status set_range(bm_axis *a, const char *text, const bm_option *o,
                           const char *scale)
{
    bool bounded = o->min != 0 || o->max != 0;

    if (!is_number(o))
        return BM_FAIL(
            BM_ERR_CONFIG,
            "%s: the setting is not a number; give its values, as a,b", text);
    if (bounded && (a->low < o->min || a->high > o->max))
        return BM_FAIL(BM_ERR_CONFIG, "%s is not within [%g, %g]", text, o->min,
                       o->max);
    a->integer = is_integer(o);
    return set_scale(a, text, scale);
}

/* NAN unless all of a text is a number. */
static double number_of(const char *text)
{
    char *end = NULL;
    double x = strtod(text, &end);

    return end == text || *end != '\0' ? NAN : x;
}

static bool is_listed(const bm_axis *a, const bm_option *o, const char *word)
{
    for (int k = 0; k < a->n_words; k++)
        if (strcmp(a->words[k], word) == 0 ||
            (is_number(o) && number_of(a->words[k]) == number_of(word)))
            return true;
    return false;
}

/* Adds the value [n] of a list. */
static bm_status add_word(bm_axis *a, const char *text, const bm_option *o,
                          const char *value, size_t n)
{
    char *word = a->words[a->n_words];

    if (n == 0)
        return BM_FAIL(BM_ERR_CONFIG,
                       "%s: expected a range or values, as a,b; one is empty",
                       text);
    if (n >= BM_AXIS_TEXT)
        return BM_FAIL(
            BM_ERR_CONFIG,
            "%s: a value has %zu characters; at most %d are possible", text, n,
            BM_AXIS_TEXT - 1);
    if (a->n_words == BM_AXIS_MOST_WORDS)
        return BM_FAIL(BM_ERR_CONFIG, "%s: a list has at most %d values", text,
                       BM_AXIS_MOST_WORDS);
    memcpy(word, value, n);
    word[n] = '\0';
    if (is_listed(a, o, word))
        return BM_FAIL(BM_ERR_CONFIG, "%s: %s is there twice", text, word);
    a->n_words++;
    return BM_OK;
}

static bm_status set_words(bm_axis *a, const char *text, const bm_option *o,
                           const char *values)
{
    const char *between = strstr(values, ", ") != NULL ? ", " : ",";

    a->scale = BM_AXIS_WORDS;
    for (;;) {
        const char *end = strstr(values, between);
        size_t n = end != NULL ? (size_t)(end - values) : strlen(values);

        BM_TRY(add_word(a, text, o, values, n));
        if (end == NULL)
            return BM_OK;
        values = end + strlen(between);
        values += strspn(values, " ");
    }
}

bm_status bm_axis_parse(bm_axis *out, const char *text,
                        const bm_section *sections)
{
    bm_axis a = {0};
    const bm_option *o = NULL;
    const char *equals = strchr(text, '='), *scale = NULL;
    size_t n = equals != NULL ? (size_t)(equals - text) : 0;

    if (n == 0 || n >= sizeof a.name)
        return BM_FAIL(BM_ERR_CONFIG,
                       "%s: expected SECTION.KEY=LOW..HIGH or "
                       "SECTION.KEY=A,B",
                       text);
    memcpy(a.name, text, n);
    o = bm_axis_option(sections, a.name);
    if (o == NULL)
        return BM_FAIL(BM_ERR_CONFIG,
                       "%s: there is no setting %s; bmuf options lists them",
                       text, a.name);
    if (has_range(equals + 1, &a.low, &a.high, &scale))
        BM_TRY(set_range(&a, text, o, scale));
    else if (is_number(o) && strstr(equals + 1, "..") != NULL)
        return BM_FAIL(BM_ERR_CONFIG,
                       "%s: LOW and HIGH of a range LOW..HIGH are numbers",
                       text);
    else
        BM_TRY(set_words(&a, text, o, equals + 1));
    *out = a;
    return BM_OK;
}

/* Does a word begin as SECTION.KEY=.. does? */
static bool begins_axis(const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    size_t n = strspn(word, letters), m = 0;

    if (n == 0 || word[n] != '.')
        return false;
    m = strspn(word + n + 1, letters);
    return m > 0 && word[n + 1 + m] == '=';
}

const char *bm_axis_next(const char *text, char out[BM_AXIS_MOST_TEXT])
{
    const char *end = NULL;
    size_t n = 0;

    text += strspn(text, " ");
    end = text;
    do {
        end += strcspn(end, " ");
        n = (size_t)(end - text);
        end += strspn(end, " ");
    } while (*end != '\0' && !begins_axis(end));
    snprintf(out, BM_AXIS_MOST_TEXT, "%.*s", (int)n, text);
    return end;
}

static double logit(double x)
{
    return log(x / (1 - x));
}

double bm_axis_value(const bm_axis *a, double u)
{
    double x = 0, low = 0, high = 0;

    switch (a->scale) {
    case BM_AXIS_log:
        x = a->low * pow(a->high / a->low, u);
        break;
    case BM_AXIS_linear:
        x = a->low + u * (a->high - a->low);
        break;
    case BM_AXIS_logit:
        low = logit(a->low);
        high = logit(a->high);
        x = 1 / (1 + exp(-(low + u * (high - low))));
        break;
    case BM_AXIS_WORDS:
        return floor(fmin(u * a->n_words, a->n_words - 1));
    }
    return a->integer ? round(x) : x;
}

void bm_axis_text(const bm_axis *a, double u, char out[BM_AXIS_TEXT])
{
    double x = bm_axis_value(a, u);

    if (a->scale == BM_AXIS_WORDS)
        snprintf(out, BM_AXIS_TEXT, "%s", a->words[(int)x]);
    else if (a->integer)
        snprintf(out, BM_AXIS_TEXT, "%.0f", x);
    else if (a->scale == BM_AXIS_logit && x > 0.5) /* digits of 1 - x */
        snprintf(out, BM_AXIS_TEXT, "%.*f", (int)(3 - floor(log10(1 - x))) - 1,
                 x);
    else
        snprintf(out, BM_AXIS_TEXT, "%.3g", x);
}

double bm_axis_place_of(const bm_axis *a, double x)
{
    double slack = 1e-9 * (fabs(a->low) + fabs(a->high));

    if (a->scale == BM_AXIS_WORDS || !(x >= a->low - slack) ||
        !(x <= a->high + slack))
        return NAN;
    x = fmin(fmax(x, a->low), a->high);
    switch (a->scale) {
    case BM_AXIS_log:
        return log(x / a->low) / log(a->high / a->low);
    case BM_AXIS_logit:
        return (logit(x) - logit(a->low)) / (logit(a->high) - logit(a->low));
    default:
        return (x - a->low) / (a->high - a->low);
    }
}

double bm_axis_place(const bm_axis *a, const char *value)
{
    char *end = NULL;
    double x = strtod(value, &end);

    for (int k = 0; k < a->n_words; k++)
        if (strcmp(a->words[k], value) == 0)
            return (k + 0.5) / a->n_words;
    return end == value || *end != '\0' ? NAN : bm_axis_place_of(a, x);
}

void bm_axis_describe(const bm_axis *a, char *out, size_t room)
{
    size_t length = 0;

    if (a->scale != BM_AXIS_WORDS) {
        snprintf(out, room, "%g .. %g, %s", a->low, a->high, scales[a->scale]);
        return;
    }
    out[0] = '\0';
    for (int k = 0; k < a->n_words && length < room; k++)
        length += (size_t)snprintf(out + length, room - length, "%s%s",
                                   k > 0 ? ", " : "", a->words[k]);
}
