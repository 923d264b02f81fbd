#include "cli/telemetry/fields.h"

#include <math.h>
#include <string.h>

static const bm_field *find(const bm_field *fields, const char *key)
{
    while (fields->key != NULL && strcmp(fields->key, key) != 0)
        fields++;
    return fields;
}

double bm_field_number(const bm_field *fields, const char *key)
{
    const bm_field *f = find(fields, key);

    return f->key != NULL && f->text == NULL ? f->number : NAN;
}

const char *bm_field_text(const bm_field *fields, const char *key)
{
    const bm_field *f = find(fields, key);

    return f->key != NULL ? f->text : NULL;
}
