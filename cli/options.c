/* options.c - bmuf options: prints all settings, from their tables. */
#include "cli/conditions.h"
#include "cli/settings.h"
#include "cli/verbs.h"
#include "comm/code/code.h"

#include <math.h>
#include <string.h>

static const char *kind(const bm_option *o)
{
    static const char *const kinds[] = {
        [BM_INT] = "integer",  [BM_FLOAT] = "number",
        [BM_FLAG] = "yes, no", [BM_AUTO] = "number, auto",
        [BM_TEXT] = "text",    [BM_CHOICE] = "",
    };
    return o->type == BM_CHOICE ? o->unit : kinds[o->type];
}

/* "tree exact mpi " becomes "tree, exact, mpi". */
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

/* A number in its shortest form: "0", "0.9999", "1e6". */
static const char *bound(double x, char out[24])
{
    char text[24];
    const char *e = NULL;

    if (x >= 1e5 && fmod(x, 1e5) == 0)
        snprintf(text, sizeof text, "%.0e", x);
    else
        snprintf(text, sizeof text, "%.16g", x);
    e = strstr(text, "e+");
    if (e != NULL)
        snprintf(out, 24, "%.*se%s", (int)(e - text), text,
                 e + 2 + strspn(e + 2, "0"));
    else
        snprintf(out, 24, "%s", text);
    return out;
}

static void describe(const bm_option *o, char *out, size_t room)
{
    char words[200], low[24], high[24];

    if (o->type == BM_CHOICE || (o->type == BM_TEXT && o->unit != NULL))
        list_words(o->unit, words, sizeof words);
    else
        snprintf(words, sizeof words, "%s", kind(o));
    if (o->type != BM_CHOICE && (o->min != 0 || o->max != 0))
        snprintf(out, room, "%s, %s to %s%s%s", words, bound(o->min, low),
                 bound(o->max, high), o->unit ? " " : "",
                 o->unit ? o->unit : "");
    else
        snprintf(out, room, "%s%s%s", words,
                 o->type < BM_TEXT && o->unit ? " " : "",
                 o->type < BM_TEXT && o->unit ? o->unit : "");
}

/* The meaning of the words of some choices. */
static const struct {
    const char *section, *key, *word, *const *help;
} choices[] = {
#define X(name) {"train", "strategy", #name, &bm_strategy_##name.help},
    BM_STRATEGIES(X)
#undef X
#define X(name) {"model", "loss", #name, &bm_loss_##name.help},
        BM_LOSSES(X)
#undef X
#define X(name) {"compress", "code", #name, &bm_code_##name##_baseline.help},
            BM_CODES(X)
#undef X
};

static void print_choices(const char *section, const char *key,
                          const char *line)
{
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (strcmp(choices[i].section, section) == 0 &&
            strcmp(choices[i].key, key) == 0)
            printf(line, choices[i].word, *choices[i].help);
}

/* Under which other setting it counts, in `line`. */
static void print_condition(const char *section, const char *key,
                            const char *line)
{
    const char *when = bm_condition(section, key);

    if (when != NULL && when[0] != '\0')
        printf(line, when);
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
            print_choices(s->name, o->key, "      %s: %s\n");
            print_condition(s->name, o->key, "      counts with %s\n");
        }
    }
}

/* The introduction of a section in docs/options.md; other sections belong to
 * strategies. */
static const char *about(const char *section)
{
    static const char *const known[][2] = {
        {"data", "Directories of shards, written by `bmuf pack`."},
        {"model", "The network, see [layers.md](layers.md)."},
        {"train", "The strategy and the length of training, see "
                  "[strategies.md](strategies.md)."},
        {"job", "Workers and hardware. The result depends on the number of "
                "workers, not on the number of ranks\n(`-n`)."},
        {"batch", "Mini-batches. Set at most one of the two sizes."},
        {"block", "The data that a worker trains on between two exchanges. Set "
                  "at most one of the three sizes;\n[tuning.md](tuning.md) "
                  "says how to choose it."},
        {"compress",
         "The coding of block updates, see "
         "[strategies.md](strategies.md#compressed-block-updates)."},
        {"sgd", "The local update of every worker, see [sgd.md](sgd.md)."},
        {"schedule", "The learning rate over time, see [sgd.md](sgd.md)."},
        {"clock", "The order in which workers reach the server of `asgd`, "
                  "`softsync` and `easgd`, see\n"
                  "[strategies.md](strategies.md)."},
        {"bmuf", "The filter of `train.strategy = bmuf`, see "
                 "[tuning.md](tuning.md) for formulas and gains."},
        {"features", "The computation of features, see "
                     "[features.md](features.md)."},
        {"shard", "The files, see [shards.md](shards.md)."},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i][0], section) == 0)
            return known[i][1];
    return bm_strategy_find(section)->help;
}

static void print_default(const bm_option *o)
{
    if (o->fallback == NULL)
        printf("required");
    else if (o->fallback[0] == '\0')
        printf("none");
    else
        printf("`%s`", o->fallback);
}

static void print_markdown(const char *title, const char *what_for,
                           const bm_section *sections)
{
    printf("\n## %s\n\n%s.\n", title, what_for);
    for (const bm_section *s = sections; s->name != NULL; s++) {
        printf("\n### [%s]\n\n%s\n\n| setting | default | values | meaning "
               "|\n|---|---|---|---|\n",
               s->name, about(s->name));
        for (const bm_option *o = s->options; o->key != NULL; o++) {
            char what[300];

            describe(o, what, sizeof what);
            printf("| `%s` | ", o->key);
            print_default(o);
            printf(" | %s | %s", what, o->help);
            print_choices(s->name, o->key, "; `%s`: %s");
            print_condition(s->name, o->key, "; counts with `%s`");
            printf(" |\n");
        }
    }
}

static const char introduction[] =
    "# Settings\n\n"
    "Generated by `bmuf options --markdown`; a test compares this page with "
    "the program.\n\n"
    "A configuration file of `bmuf train` needs `data.train` and `model.net`; "
    "everything else has\na default. A short file:\n\n"
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
    "`bmuf eval`\n([eval.md](eval.md)) have no file, only `--set`. If settings "
    "are invalid, the program lists all\nof them with file, line and the "
    "nearest valid name, and exits with code 78. `RUN/config.ini`\nhas every "
    "setting of a run; `bmuf train` accepts it as a configuration.\n";

static bm_status options(const bm_arguments *a)
{
    const bm_importer_ops *const *all = bm_importer_list();
    bool markdown = bm_argument(a, "markdown") != NULL;

    if (markdown) {
        printf("%s", introduction);
        print_markdown("bmuf train CONFIG", "A training run",
                       bm_train_sections());
    } else if (bm_argument(a, "pack") == NULL) {
        print_plain(bm_train_sections());
    }
    for (size_t i = 0; all[i] != NULL; i++) {
        bm_section sections[3];
        char title[60];

        bm_pack_sections(all[i], sections);
        snprintf(title, sizeof title, "bmuf pack --%s", all[i]->name);
        if (markdown) {
            print_markdown(title, all[i]->help, sections);
        } else if (bm_argument(a, "pack") != NULL) {
            printf("; %s: %s\n", title, all[i]->help);
            print_plain(sections);
        }
    }
    return BM_OK;
}

static const bm_flag flags[] = {
    {"pack", NULL, "print the settings of bmuf pack, not of bmuf train", 0,
     false},
    {"markdown", NULL, "print all settings, as in docs/options.md", 0, false},
    {0},
};

const bm_verb bm_verb_options = {
    .name = "options",
    .nouns = "",
    .help = "print all settings with default, bounds and meaning",
    .text = "  bmuf options\n  bmuf options --pack\n",
    .flags = flags,
    .least = 0,
    .most = 0,
    .run = options,
};
