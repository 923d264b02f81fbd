#include "tests/support/printed.h"

#include "tests/support/support.h"

#include <stdlib.h>
#include <string.h>

json_t *parse_json(const char *json)
{
    json_error_t error;
    json_t *value = json_loads(json, JSON_REJECT_DUPLICATES, &error);

    if (value == NULL)
        fail_msg("%s in: %s", error.text, json);
    return value;
}

double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_number(value))
        fail_msg("there is no number '%s'", key);
    return json_number_value(value);
}

const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    if (value == NULL)
        fail_msg("there is no text '%s'", key);
    return value;
}

double number_after(const char *printed, const char *words)
{
    const char *at = strstr(printed, words);
    char *end = NULL;
    double x = 0;

    if (at == NULL) {
        fail_msg("'%s' is not in: %s", words, printed);
        return x;
    }
    at += strlen(words);
    x = strtod(at, &end);
    if (end == at)
        fail_msg("there is no number behind '%s' in: %s", words, printed);
    return x;
}
