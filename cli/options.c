/* options.c - bmuf options: every setting, from the tables. */
#include "cli/settings.h"
#include "cli/verbs.h"

#include <string.h>

static const char *kind(const bm_option *o)
{
    static const char *const kinds[] = {
        [BM_INT] = "whole number", [BM_FLOAT] = "number",
        [BM_FLAG] = "yes, no",     [BM_AUTO] = "number, auto",
        [BM_TEXT] = "text",        [BM_CHOICE] = "",
    };
    return o->type == BM_CHOICE ? o->unit : kinds[o->type];
}

/* "tree exact fast " becomes "tree, exact, fast". */
static void list_words(const char *words, char *out, size_t room)
{
    size_t n = 0;

    for (; *words != '\0' && n + 3 < room; words++)
        if (*words != ' ') {
            out[n++] = *words;
        } else if (words[1] != '\0') {
            out[n++] = ',';
            out[n++] = ' ';
        }
    out[n] = '\0';
}

static void describe(const bm_option *o, char *out, size_t room)
{
    char words[200];

    if (o->type == BM_CHOICE)
        list_words(o->unit, words, sizeof words);
    else
        snprintf(words, sizeof words, "%s", kind(o));
    if (o->type != BM_CHOICE && (o->min != 0 || o->max != 0))
        snprintf(out, room, "%s, %.6g to %.6g%s%s", words, o->min, o->max,
                 o->unit ? " " : "", o->unit ? o->unit : "");
    else
        snprintf(out, room, "%s%s%s", words,
                 o->type != BM_CHOICE && o->unit ? " " : "",
                 o->type != BM_CHOICE && o->unit ? o->unit : "");
}

static void print_plain(const bm_section *sections)
{
    for (const bm_section *s = sections; s->name != NULL; s++) {
        printf("[%s]\n", s->name);
        for (const bm_option *o = s->options; o->key != NULL; o++) {
            char what[300];

            describe(o, what, sizeof what);
            printf("  %s = %s\n      %s (%s)\n", o->key,
                   o->fallback != NULL ? o->fallback : "<required>", o->help,
                   what);
        }
    }
}

static void print_markdown(const char *title, const bm_section *sections)
{
    printf("\n## %s\n", title);
    for (const bm_section *s = sections; s->name != NULL; s++) {
        printf("\n### [%s]\n\n| setting | default | values | meaning |\n"
               "|---|---|---|---|\n",
               s->name);
        for (const bm_option *o = s->options; o->key != NULL; o++) {
            char what[300];

            describe(o, what, sizeof what);
            printf("| `%s` | %s%s%s | %s | %s |\n", o->key,
                   o->fallback == NULL ? "required" : "`",
                   o->fallback == NULL      ? ""
                   : o->fallback[0] == '\0' ? " "
                                            : o->fallback,
                   o->fallback == NULL ? "" : "`", what, o->help);
        }
    }
}

static bm_status options(const bm_arguments *a)
{
    const bm_importer_ops *const *all = bm_importer_list();
    bool markdown = bm_argument(a, "markdown") != NULL;

    if (markdown) {
        printf("# Settings\n\nMade by `bmuf options --markdown`; a test "
               "compares them. A configuration file holds\nthose of `bmuf "
               "train`; each can be changed by `--set section.key=value`.\n");
        print_markdown("bmuf train", bm_train_sections());
    } else if (bm_argument(a, "pack") == NULL) {
        print_plain(bm_train_sections());
    }
    for (size_t i = 0; all[i] != NULL; i++) {
        bm_section sections[3];
        char title[60];

        bm_pack_sections(all[i], sections);
        snprintf(title, sizeof title, "bmuf pack --%s", all[i]->name);
        if (markdown) {
            print_markdown(title, sections);
        } else if (bm_argument(a, "pack") != NULL) {
            printf("; %s\n", title);
            print_plain(sections);
        }
    }
    return BM_OK;
}

static const bm_flag flags[] = {
    {"pack", NULL, "those of bmuf pack instead of bmuf train", 0, false},
    {"markdown", NULL, "all of them, as docs/options.md", 0, false},
    {0},
};

const bm_verb bm_verb_options = {
    .name = "options",
    .nouns = "",
    .help = "every setting with its default, bounds and meaning",
    .text = "  bmuf options\n  bmuf options --pack\n",
    .flags = flags,
    .least = 0,
    .most = 0,
    .run = options,
};
