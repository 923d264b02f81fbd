/* options.c - bmuf options: prints settings, from their tables. */
#include "cli/conditions.h"
#include "cli/habits.h"
#include "cli/help/setting_text.h"
#include "cli/json_output.h"
#include "cli/verbs.h"
#include "core/text/words.h"

#include <jansson.h>
#include <string.h>

/* ---- which settings ------------------------------------------------------ */

/* The settings to print: all, those of a section, those with a key, or one
 * section.key. */
typedef struct selection {
    const char *word; /* NULL: all */
    bool pack;        /* of bmuf pack only */
    size_t n;         /* settings printed so far */
} selection;

static bool selects(const selection *want, const bm_section *s,
                    const bm_option *o)
{
    const char *word = want->word;
    size_t n = strlen(s->name);

    return word == NULL || strcmp(word, s->name) == 0 ||
           strcmp(word, o->key) == 0 ||
           (strncmp(word, s->name, n) == 0 && word[n] == '.' &&
            strcmp(word + n + 1, o->key) == 0);
}

static bool selects_any(const selection *want, const bm_section *s)
{
    for (const bm_option *o = s->options; o->key != NULL; o++)
        if (selects(want, s, o))
            return true;
    return false;
}

/* Is the table of the selected section also in a group before this one? */
static bool repeated(const selection *want, size_t group, const bm_section *s)
{
    bm_setting_group g;

    for (size_t i = 0; want->word != NULL && i < group; i++) {
        bm_setting_group_at(i, &g);
        for (const bm_section *t = g.sections; t->name != NULL; t++)
            if (t->options == s->options)
                return true;
    }
    return false;
}

/* Without a word, the settings of bmuf train, or with --pack of bmuf pack; with
 * a word, all. */
static bool selects_group(const selection *want, const bm_setting_group *g)
{
    return want->pack ? g->pack : want->word != NULL || !g->pack;
}

static void add_name(char *names, size_t room, const char *section,
                     const char *key)
{
    size_t n = strlen(names);

    snprintf(names + n, room - n, "%s%s%s ", section,
             section[0] != '\0' && key[0] != '\0' ? "." : "", key);
}

static bm_status report_unknown(const char *word)
{
    static char names[1 << 15];
    char near[64] = "";
    bm_setting_group g;

    names[0] = '\0';
    for (size_t i = 0; bm_setting_group_at(i, &g); i++)
        for (const bm_section *s = g.sections; s->name != NULL; s++) {
            add_name(names, sizeof names, s->name, "");
            for (const bm_option *o = s->options; o->key != NULL; o++) {
                add_name(names, sizeof names, "", o->key);
                add_name(names, sizeof names, s->name, o->key);
            }
        }
    if (!bm_habit_setting(word, false, near, sizeof near) &&
        !bm_habit_setting(word, true, near, sizeof near) &&
        !bm_nearest_word(word, names, near, sizeof near))
        return BM_FAIL(BM_ERR_ARG,
                       "there is no section or setting '%s'; bmuf options and "
                       "bmuf options --pack list all",
                       word);
    if (strcmp(near, word) == 0)
        return BM_FAIL(BM_ERR_ARG,
                       "%s is a setting of another verb than bmuf pack; leave "
                       "--pack out",
                       word);
    return BM_FAIL(BM_ERR_ARG,
                   "there is no section or setting '%s'; did you mean %s?",
                   word, near);
}

/* ---- text ---------------------------------------------------------------- */

/* Under which other setting it applies; NULL: always. */
static const char *condition_of(const bm_section *s, const bm_option *o)
{
    const char *when = bm_condition(s->name, o->key);

    return when != NULL && when[0] != '\0' ? when : NULL;
}

static void print_option(const bm_section *s, const bm_option *o)
{
    char values[300], word[64];

    bm_option_values(o, values, sizeof values);
    printf("  %s = %s\n      %s (%s)\n", o->key,
           o->fallback != NULL ? o->fallback : "<required>", o->help, values);
    for (size_t i = 0; bm_choice_at(o, i, word); i++) {
        const char *help = bm_choice_help(s->name, o->key, word);

        if (help != NULL)
            printf("      %s: %s\n", word, help);
    }
    if (condition_of(s, o) != NULL)
        printf("      applies only with %s\n", condition_of(s, o));
}

static void print_plain(selection *want, size_t group,
                        const bm_setting_group *g)
{
    bool titled = !g->pack;

    for (const bm_section *s = g->sections; s->name != NULL; s++) {
        if (!selects_any(want, s) || repeated(want, group, s))
            continue;
        if (!titled)
            printf("; %s: %s\n", g->verb, g->help);
        titled = true;
        printf("[%s]\n", s->name);
        for (const bm_option *o = s->options; o->key != NULL; o++)
            if (selects(want, s, o)) {
                print_option(s, o);
                want->n++;
            }
    }
}

/* ---- Markdown ------------------------------------------------------------ */

static void print_default(const bm_option *o)
{
    if (o->fallback == NULL)
        printf("required");
    else if (o->fallback[0] == '\0')
        printf("none");
    else
        printf("`%s`", o->fallback);
}

static void print_section(const bm_section *s)
{
    printf("\n### [%s]\n\n%s\n\n| setting | default | values | meaning "
           "|\n|---|---|---|---|\n",
           s->name, bm_section_about(s->name));
    for (const bm_option *o = s->options; o->key != NULL; o++) {
        char values[300], word[64];

        bm_option_values(o, values, sizeof values);
        printf("| `%s` | ", o->key);
        print_default(o);
        printf(" | %s | %s", values, o->help);
        for (size_t i = 0; bm_choice_at(o, i, word); i++) {
            const char *help = bm_choice_help(s->name, o->key, word);

            if (help != NULL)
                printf("; `%s`: %s", word, help);
        }
        if (condition_of(s, o) != NULL)
            printf("; applies only with %s", condition_of(s, o));
        printf(" |\n");
    }
}

static const char introduction[] =
    "# Settings\n\n"
    "Generated by `bmuf options --markdown`; a test compares this page with "
    "the program.\n\n"
    "A configuration file of `bmuf train` needs `data.train`, and `model.net` "
    "or `train.init`;\neverything else has a default. A short file:\n\n"
    "```ini\n"
    "[data]\n"
    "train = data/train      # a comment begins with # or ; after a blank\n"
    "dev = data/dev\n"
    "[model]\n"
    "net = stack:3 blstm:320*4\n"
    "    linear              # an indented line continues the value\n"
    "[job]\n"
    "workers = 16\n"
    "```\n\n"
    "A value that contains a # or ; after a blank is written in double "
    "quotes: `train = \"data/a # b\"`.\n\n"
    "`--set section.key=value` overrides a setting of the file. `bmuf pack` "
    "and "
    "`bmuf eval`\n([eval.md](results/eval.md)) have no file, only `--set`. If "
    "settings "
    "are invalid, the program lists all\nof them with file, line and the "
    "nearest valid name, or ours for a name of PyTorch, ESPnet, RETURNN "
    "or\nKaldi (`lr`), and exits with code 78. `RUN/config.ini` has every "
    "setting of a run;\n`bmuf train` accepts it as a configuration.\n";

static void print_markdown(void)
{
    bm_setting_group g;

    printf("%s", introduction);
    for (size_t i = 0; bm_setting_group_at(i, &g); i++) {
        printf("\n## %s\n\n%s.\n", g.verb, g.help);
        for (const bm_section *s = g.sections; s->name != NULL; s++)
            print_section(s);
    }
}

/* ---- JSON ---------------------------------------------------------------- */

static json_t *option_json(const bm_setting_group *g, const bm_section *s,
                           const bm_option *o)
{
    static const char *const types[] = {
        [BM_INT] = "integer",  [BM_FLOAT] = "number", [BM_FLAG] = "flag",
        [BM_AUTO] = "auto",    [BM_TEXT] = "text",    [BM_CHOICE] = "choice",
        [BM_SERIES] = "series"};
    json_t *out =
        json_pack("{s:s, s:s, s:s, s:s, s:s?, s:s}", "verb", g->verb, "section",
                  s->name, "key", o->key, "type", types[o->type], "default",
                  o->fallback, "help", o->help);
    char word[64];

    if (o->min != 0 || o->max != 0) {
        json_object_set_new(out, "min", json_real(o->min));
        json_object_set_new(out, "max", json_real(o->max));
    }
    if (o->type == BM_CHOICE) {
        json_t *words = json_array();

        for (size_t i = 0; bm_choice_at(o, i, word); i++)
            json_array_append_new(words, json_string(word));
        json_object_set_new(out, "words", words);
    } else if (o->unit != NULL) {
        json_object_set_new(out, "unit", json_string(o->unit));
    }
    if (condition_of(s, o) != NULL)
        json_object_set_new(out, "counts_with",
                            json_string(condition_of(s, o)));
    return out;
}

static void add_json(selection *want, size_t group, const bm_setting_group *g,
                     json_t *list)
{
    for (const bm_section *s = g->sections; s->name != NULL; s++)
        for (const bm_option *o = s->options; o->key != NULL; o++)
            if (selects(want, s, o) && !repeated(want, group, s)) {
                json_array_append_new(list, option_json(g, s, o));
                want->n++;
            }
}

/* ---- the verb ------------------------------------------------------------ */

static bm_status options(const bm_arguments *a)
{
    selection want = {.word = a->nouns[0],
                      .pack = bm_argument(a, "pack") != NULL};
    bool json = bm_argument(a, "json") != NULL;
    json_t *list = NULL;
    bm_setting_group g;

    if (bm_argument(a, "markdown") != NULL) {
        print_markdown();
        return BM_OK;
    }
    list = json_array();
    for (size_t i = 0; bm_setting_group_at(i, &g); i++)
        if (selects_group(&want, &g)) {
            if (json)
                add_json(&want, i, &g, list);
            else
                print_plain(&want, i, &g);
        }
    if (json && want.n > 0)
        bm_json_print(json_pack("{s:O}", "settings", list),
                      JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    json_decref(list);
    return want.n > 0 ? BM_OK : report_unknown(want.word);
}

static const bm_flag flags[] = {
    {"pack", NULL, "print the settings of bmuf pack, not of bmuf train", 0,
     false},
    {"markdown", NULL, "print all settings, as in docs/options.md", 0, false},
    BM_JSON_FLAG,
    {0},
};

const bm_verb bm_verb_options = {
    .name = "options",
    .nouns = "[SECTION|KEY]",
    .help = "print settings with default, bounds and meaning",
    .text = "  bmuf options\n"
            "  bmuf options bmuf\n"
            "  bmuf options sgd.momentum\n"
            "  bmuf options --pack\n\n"
            "KEY is a setting, as section.key or key alone.\n",
    .flags = flags,
    .least = 0,
    .most = 1,
    .run = options,
};
