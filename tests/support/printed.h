/* printed.h - what programs print and write: JSON, and numbers among words. */
#ifndef BM_TESTS_SUPPORT_PRINTED_H
#define BM_TESTS_SUPPORT_PRINTED_H

#include <jansson.h>

/* The one value of a text; json_decref. Fails if it is none. */
json_t *parse_json(const char *json);

/* Fields of an object. Fail if there is no such number or text. */
double number(const json_t *object, const char *key);
const char *text(const json_t *object, const char *key);

/* The number behind the words, at their first place. Fails if there is none. */
double number_after(const char *printed, const char *words);

/* As printed: with so many digits. */
#define assert_after(printed, words, x, digits)                                \
    assert_true(                                                               \
        near(number_after(printed, words) / (x), 1, 6 * pow(10, -(digits))))

#endif
