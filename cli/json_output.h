/* json_output.h - prints results as JSON, for --json. */
#ifndef BM_CLI_JSON_OUTPUT_H
#define BM_CLI_JSON_OUTPUT_H

#include "core/status.h"
#include "core/text/printable.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* The row of a verb's options. */
#define BM_JSON_FLAG                                                           \
    {                                                                          \
        "json", NULL, "print one JSON object instead of text", 0, false        \
    }

/* A text of a user, such as the name of a file: bytes that are not UTF-8, which
 * JSON cannot have, are escaped as in messages. NULL: no text, or no memory. */
static inline json_t *bm_json_text(const char *text)
{
    json_t *o = json_string(text);
    char *escaped = o == NULL && text != NULL ? bm_printable_copy(text) : NULL;

    if (escaped != NULL)
        o = json_string(escaped);
    free(escaped);
    return o;
}

/* Prints o and a line break to stdout, then releases o. `flags`: of jansson. NULL
 * is a fault of the caller: a text that is not UTF-8 (bm_json_text). */
static inline void bm_json_print(json_t *o, size_t flags)
{
    BM_ASSERT(o != NULL);
    json_dumpf(o, stdout, flags);
    putchar('\n');
    json_decref(o);
}

#endif
