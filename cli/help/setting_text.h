/*
 * setting_text.h - settings in words, from their tables: for bmuf options, the
 * manual pages and completion.
 */
#ifndef BM_CLI_HELP_SETTING_TEXT_H
#define BM_CLI_HELP_SETTING_TEXT_H

#include "core/config/config.h"

/* The settings of `bmuf train` and of `bmuf pack` with one importer. */
typedef struct bm_setting_group {
    char verb[60];              /* "bmuf train CONFIG", "bmuf pack --audio" */
    const char *help;           /* what the group is for */
    bool pack;                  /* of bmuf pack */
    bm_section own[4];          /* what `sections` points to, of bmuf pack */
    const bm_section *sections; /* ends with {0} */
} bm_setting_group;

/* Group i, from 0 on; false: there is none. Do not copy *out. */
bool bm_setting_group_at(size_t i, bm_setting_group *out);

/* out [room] <- the values of an option: "integer, 1 to 64 ranks". */
void bm_option_values(const bm_option *o, char *out, size_t room);

/* Word i of a BM_CHOICE, from 0 on; false: there is none. */
bool bm_choice_at(const bm_option *o, size_t i, char word[64]);

/* What a word of a choice means; NULL: its option explains it. Static. */
const char *bm_choice_help(const char *section, const char *key,
                           const char *word);

/* The introduction of a section, in Markdown. Static. */
const char *bm_section_about(const char *section);

/* out [room] <- text of a table without the marks of Markdown: without line
 * breaks, backquotes and the targets of links. */
void bm_plain_text(const char *markdown, char *out, size_t room);

#endif
