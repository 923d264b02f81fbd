#include "core/config/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t";

/* *text moves past the number; false: there is none. */
static bool read_number(const char **text, double *out)
{
    char *end = NULL;

    if (strchr(blanks, **text) != NULL) /* also at the end of the text */
        return false;
    *out = strtod(*text, &end);
    if (end == *text || !isfinite(*out))
        return false;
    *text = end;
    return true;
}

static bool read_value(const char **text, bool automatic, double *out)
{
    static const char word[] = "auto";

    if (!automatic || strncmp(*text, word, sizeof word - 1) != 0)
        return read_number(text, out);
    *text += sizeof word - 1;
    *out = NAN;
    return true;
}

bool bm_series_read(const char *text, bool automatic, bm_series *out)
{
    bm_series s = {0};

    for (text += strspn(text, blanks); *text != '\0';
         text += strspn(text, blanks)) {
        double value = 0, from = 0;

        if (s.n == BM_SERIES_MOST || !read_value(&text, automatic, &value))
            return false;
        if (*text == '@') {
            text++;
            if (!read_number(&text, &from))
                return false;
        } else if (s.n > 0) {
            return false;
        }
        if (strchr(blanks, *text) == NULL ||
            (s.n == 0 ? from != 0 : from <= s.from[s.n - 1]))
            return false;
        s.value[s.n] = value;
        s.from[s.n++] = from;
    }
    if (s.n == 0)
        return false;
    *out = s;
    return true;
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

bool bm_series_equal(const bm_series *a, const bm_series *b)
{
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++)
        if (!same(a->value[i], b->value[i]) || a->from[i] != b->from[i])
            return false;
    return true;
}

bool bm_series_join(const bm_series *a, const bm_series *b, bm_series *out)
{
    bm_series joined = {.n = 1};
    int i = 1, k = 1;

    while (i < a->n || k < b->n) {
        double next = i < a->n ? a->from[i] : INFINITY;
        double other = k < b->n ? b->from[k] : INFINITY;

        if (joined.n == BM_SERIES_MOST)
            return false;
        joined.from[joined.n++] = fmin(next, other);
        i += next <= other;
        k += other <= next;
    }
    *out = joined;
    return true;
}

int bm_series_index(const bm_series *s, double epochs)
{
    int i = 0;

    while (i + 1 < s->n && s->from[i + 1] <= epochs)
        i++;
    return i;
}

double bm_series_at(const bm_series *s, double epochs)
{
    return s->value[bm_series_index(s, epochs)];
}
