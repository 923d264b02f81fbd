/* config_compare.c - the settings in which two configurations differ. */
#include "core/config/config.h"

#include <stdlib.h>
#include <string.h>

static const char *value_of(const bm_config *config, const char *section,
                            const bm_option *o)
{
    const char *text = bm_config_text(config, section, o->key);
    return text != NULL ? text : o->fallback != NULL ? o->fallback : "";
}

static bool equal_series(const char *a, const char *b)
{
    bm_series x, y;

    return bm_series_read(a, true, &x) && bm_series_read(b, true, &y) &&
           bm_series_equal(&x, &y);
}

static bool equal(const bm_option *o, const char *a, const char *b)
{
    char *end_a = NULL, *end_b = NULL;
    double x = 0, y = 0;

    if (strcmp(a, b) == 0)
        return true;
    if (o->type == BM_SERIES)
        return equal_series(a, b);
    if (o->type != BM_INT && o->type != BM_FLOAT && o->type != BM_AUTO)
        return false;
    x = strtod(a, &end_a);
    y = strtod(b, &end_b);
    return end_a != a && end_b != b && *end_a == '\0' && *end_b == '\0' &&
           x == y;
}

void bm_config_compare(const bm_config *a, const bm_config *b,
                       const bm_section *sections,
                       void (*differ)(void *self, const char *section,
                                      const bm_option *o, const char *in_a,
                                      const char *in_b),
                       void *self)
{
    for (const bm_section *s = sections; s->name != NULL; s++)
        for (const bm_option *o = s->options; o->key != NULL; o++) {
            const char *in_a = value_of(a, s->name, o);
            const char *in_b = value_of(b, s->name, o);

            if (!equal(o, in_a, in_b))
                differ(self, s->name, o, in_a, in_b);
        }
}
