/* json_output.h - prints results as JSON, for --json. */
#ifndef BM_CLI_JSON_OUTPUT_H
#define BM_CLI_JSON_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

/* The row of a verb's options. */
#define BM_JSON_FLAG                                                           \
    {                                                                          \
        "json", NULL, "print one JSON object instead of text", 0, false        \
    }

/* Prints o and a line break to stdout, then releases o. `flags`: of jansson. */
static inline void bm_json_print(json_t *o, size_t flags)
{
    json_dumpf(o, stdout, flags);
    putchar('\n');
    json_decref(o);
}

#endif
