/*
 * config.c - the list of settings with their origins. config_file.c reads and
 * writes it, config_table.c checks it against tables.
 */
#include "core/config/config_parts.h"

#include "core/grow.h"

#include <stdlib.h>
#include <string.h>

bm_status bm_config_new(bm_config **out)
{
    bm_config *config = calloc(1, sizeof *config);

    if (config == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a configuration");
    *out = config;
    return BM_OK;
}

static void entry_free(bm_entry *e)
{
    free(e->section);
    free(e->key);
    free(e->value);
    free(e->origin);
}

void bm_config_free(bm_config *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < config->n; i++)
        entry_free(&config->entries[i]);
    free(config->entries);
    free(config->path);
    free(config);
}

bm_status bm_config_add(bm_config *config, const char *section, const char *key,
                        const char *text, const char *origin)
{
    bm_entry e = {strdup(section), strdup(key), strdup(text), strdup(origin)};
    bm_status status = bm_grow(&config->entries, config->n, &config->room,
                               sizeof *config->entries);

    if (status != BM_OK || !e.section || !e.key || !e.value || !e.origin) {
        entry_free(&e);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s.%s", section, key);
    }
    config->entries[config->n++] = e;
    return BM_OK;
}

const bm_entry *bm_config_find(const bm_config *config, const char *section,
                               const char *key)
{
    for (size_t i = config ? config->n : 0; i-- > 0;) { /* the last one wins */
        const bm_entry *e = &config->entries[i];
        if (strcmp(e->section, section) == 0 && strcmp(e->key, key) == 0)
            return e;
    }
    return NULL;
}

/* Does a double quote look like the end of the value? */
static bool ends_early(const char *text)
{
    for (; *text != '\0'; text++) {
        size_t blanks = strspn(text + 1, " \t");

        if (*text == '"' && blanks > 0 && text[1 + blanks] != '\0' &&
            strchr("#;", text[1 + blanks]) != NULL)
            return true;
    }
    return false;
}

enum { LONGEST_NAME = 150, LONGEST_VALUE = BM_LONGEST_LINE - 160 };

bm_status bm_config_set(bm_config *config, const char *assignment)
{
    size_t name = strcspn(assignment, "="), section = strcspn(assignment, ".");
    const char *text = assignment + name + 1;
    char left[LONGEST_NAME + 1];

    if (assignment[name] == '\0' || section >= name)
        return BM_FAIL(BM_ERR_ARG,
                       "'%s' is not of the form section.key=value; bmuf "
                       "options WORD finds the setting",
                       assignment);
    text += strspn(text, " \t");
    while (name > section + 1 && strchr(" \t", assignment[name - 1]) != NULL)
        name--;
    /* Reject what could not be written to a file and read back. */
    if (name >= sizeof left || strlen(text) > LONGEST_VALUE)
        return BM_FAIL(BM_ERR_ARG,
                       "'%.40s...': a name has at most %zu characters, a value "
                       "%d",
                       assignment, sizeof left - 1, LONGEST_VALUE);
    if (strpbrk(text, "\r\n") || ends_early(text))
        return BM_FAIL(BM_ERR_ARG,
                       "'%s' contains a line break, or a double quote before a "
                       "blank and # or ;",
                       assignment);
    memcpy(left, assignment, name);
    left[section] = left[name] = '\0';
    return bm_config_add(config, left, left + section + 1, text,
                         "command line");
}

bm_status bm_config_derive(bm_config *config, const char *section,
                           const char *key, const char *text)
{
    return bm_config_add(config, section, key, text, "default");
}

const char *bm_config_text(const bm_config *config, const char *section,
                           const char *key)
{
    const bm_entry *e = bm_config_find(config, section, key);
    return e != NULL ? e->value : NULL;
}

const char *bm_config_origin(const bm_config *config, const char *section,
                             const char *key)
{
    const bm_entry *e = bm_config_find(config, section, key);
    return e != NULL ? e->origin : "default";
}
