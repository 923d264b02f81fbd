/* config_parts.h - internal to core/config: the list of settings, and the
 * faults of the text they came from. */
#ifndef BM_CORE_CONFIG_CONFIG_PARTS_H
#define BM_CORE_CONFIG_CONFIG_PARTS_H

#include "core/config/config.h"

enum { BM_LONGEST_LINE = 65535 }; /* bytes, without the line's end */

typedef struct bm_entry {
    char *section, *key, *value;
    char *origin; /* "run.ini:12", "command line" */
} bm_entry;

struct bm_config {
    bm_entry *entries;
    size_t n, room;
    char *path;       /* of the file; NULL: none was read */
    bm_faults faults; /* of the file's text */
};

/* Appends a setting; all four texts are copied. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_config_add(bm_config *config, const char *section,
                                   const char *key, const char *text,
                                   const char *origin);

/* Must this value be in double quotes in a file? */
bool bm_config_quoted(const char *text);

/* The last entry of that name, which wins; NULL: not set. config may be
 * NULL. */
const bm_entry *bm_config_find(const bm_config *config, const char *section,
                               const char *key);

#endif
