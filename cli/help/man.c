/*
 * man.c - bmuf man: the manual pages, in roff, from the tables of verbs and
 * settings: bmuf.1 with all verbs, bmuf-VERB.1 with one, bmuf.5 with the
 * configuration file.
 */
#include "cli/conditions.h"
#include "cli/help/setting_text.h"
#include "cli/help/version.h"
#include "cli/verbs.h"
#include "core/file/file.h"

#include <ctype.h>
#include <string.h>

static const char settings_page[] = "settings"; /* bmuf.5 */

/* ---- roff ---------------------------------------------------------------- */

/* Prints n characters of a text as they are. */
static void put(FILE *out, const char *text, size_t n)
{
    if (n > 0 && strchr(".'", text[0]) != NULL)
        fputs("\\&", out);
    for (size_t i = 0; i < n; i++)
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else if (text[i] == '`' || text[i] == '\'' || text[i] == '^' ||
                 text[i] == '~')
            fprintf(out, "\\(%s",
                    text[i] == '`'    ? "ga"
                    : text[i] == '\'' ? "aq"
                    : text[i] == '^'  ? "ha"
                                      : "ti");
        else
            fputc(text[i], out);
}

static void line(FILE *out, const char *text)
{
    put(out, text, strlen(text));
    fputc('\n', out);
}

/* .B text, and the like. */
static void request(FILE *out, const char *name, const char *text)
{
    fprintf(out, "%s \"", name);
    put(out, text, strlen(text));
    fprintf(out, "\"\n");
}

/* A help text: lines that begin with two blanks are examples and stay as they
 * are, others are filled; an empty line ends a paragraph. */
static void body(FILE *out, const char *text)
{
    bool example = false;

    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        bool now = strncmp(text, "  ", 2) == 0;

        if (now != example)
            fputs(now ? ".PP\n.nf\n" : ".fi\n", out);
        if (n == 0 || (example && !now))
            fputs(".PP\n", out);
        example = now;
        put(out, text, n);
        if (n > 0)
            fputc('\n', out);
        text += n + (text[n] == '\n');
    }
    if (example)
        fputs(".fi\n", out);
}

static void head(FILE *out, const char *name, int section, const char *help)
{
    fprintf(out, ".\\\" Made by bmuf man.\n.TH ");
    for (const char *c = name; *c != '\0'; c++)
        fputc(toupper((unsigned char)*c), out);
    fprintf(out, " %d \"\" \"bmuf %s\" \"bmuf\"\n", section, bm_version());
    fprintf(out, ".SH NAME\n%s \\- ", name);
    line(out, help);
}

/* ---- verbs --------------------------------------------------------------- */

static void options(FILE *out, const bm_flag *flags)
{
    for (const bm_flag *f = flags; f->name != NULL; f++) {
        char left[120], letter[8] = "";

        if (f->letter != 0)
            snprintf(letter, sizeof letter, "-%c, ", f->letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, f->name,
                 f->value != NULL ? " " : "", f->value != NULL ? f->value : "");
        fprintf(out, ".TP\n");
        request(out, ".B", left);
        line(out, f->help);
    }
}

static void synopsis(FILE *out, const bm_verb *verb)
{
    char text[120];

    snprintf(text, sizeof text, "bmuf %s [OPTION]...%s%s", verb->name,
             verb->nouns[0] != '\0' ? " " : "", verb->nouns);
    request(out, ".B", text);
}

/* The first letter of a help text, which is in lower case, in upper case; a
 * full stop at its end. */
static void sentence(FILE *out, const char *help)
{
    fputc(toupper((unsigned char)help[0]), out);
    put(out, help + 1, strlen(help + 1));
    fputs(".\n", out);
}

static void exit_codes(FILE *out)
{
    fprintf(out, ".SH EXIT STATUS\n");
    for (const bm_exit_code *e = bm_exit_codes; e->meaning != NULL; e++) {
        fprintf(out, ".TP\n.B %s\n", e->code);
        line(out, e->meaning);
    }
}

static void verb_page(FILE *out, const bm_verb *verb)
{
    char name[40];

    snprintf(name, sizeof name, "bmuf-%s", verb->name);
    head(out, name, 1, verb->help);
    fprintf(out, ".SH SYNOPSIS\n");
    synopsis(out, verb);
    fprintf(out, ".SH DESCRIPTION\n");
    sentence(out, verb->help);
    body(out, verb->text);
    fprintf(out, ".SH OPTIONS\n");
    options(out, verb->flags);
    options(out, bm_common_flags);
    exit_codes(out);
    fprintf(out, ".SH SEE ALSO\n.BR bmuf (1),\n.BR bmuf (5)\n");
}

/* Pairs of a name and its meaning, ended by NULL. */
static void glossary(FILE *out, const char *title, const char *const *pairs)
{
    fprintf(out, ".SH %s\n", title);
    for (; *pairs != NULL; pairs += 2) {
        fprintf(out, ".TP\n");
        request(out, ".B", pairs[0]);
        line(out, pairs[1]);
    }
}

static const char *const files[] = {
    "RUN/config.ini",
    "every setting of a run; bmuf train accepts it as a configuration",
    "RUN/journal.jsonl",
    "one JSON object per event: blocks, evaluations, checkpoints",
    "RUN/checkpoints/",
    "the newest states that training can go on from",
    "RUN/model.safetensors",
    "the model at the end of training",
    "DIR/*.bmuf.h5, DIR/vocab.txt",
    "a data set as bmuf pack writes it: shards and the symbols of its labels",
    NULL,
};

static const char *const environment[] = {
    "BMUF_ISA",
    "baseline, avx2 or avx512: the loops to use, if the processor has them",
    "BMUF_PLUGINS",
    "the folder with libbmuf_cuda.so; default: the program's own folder",
    "NO_COLOR",
    "if set and not empty: no colour with --color auto",
    "TMPDIR",
    "where mpirun keeps its files",
    NULL,
};

static void main_page(FILE *out)
{
    head(out, "bmuf", 1,
         "trains speech and handwriting recognisers in parallel");
    fprintf(out, ".SH SYNOPSIS\n.B bmuf VERB [OPTION]... ARGUMENT...\n"
                 ".SH DESCRIPTION\n"
                 "Workers train on blocks of data. After each block a filter "
                 "combines their\nupdates: blockwise model\\-update filtering "
                 "(BMUF). Verbs take options, and\nsettings with\n"
                 ".B \\-\\-set section.key=value\n"
                 "or from a configuration file, see\n.BR bmuf (5).\n"
                 "Results are printed to stdout, messages to stderr.\n"
                 ".SH VERBS\n");
    for (const bm_verb *const *v = bm_verb_list(); *v != NULL; v++) {
        fprintf(out, ".SS ");
        line(out, (*v)->name);
        synopsis(out, *v);
        fprintf(out, ".PP\n");
        sentence(out, (*v)->help);
        body(out, (*v)->text);
        options(out, (*v)->flags);
    }
    fprintf(out, ".SH OPTIONS OF EVERY VERB\n");
    options(out, bm_common_flags);
    exit_codes(out);
    glossary(out, "FILES", files);
    glossary(out, "ENVIRONMENT", environment);
    fprintf(out, ".SH SEE ALSO\n.BR bmuf (5),\n.BR mpirun (1)\n");
}

/* ---- settings ------------------------------------------------------------ */

static void setting(FILE *out, const bm_section *s, const bm_option *o)
{
    char text[400], word[64];
    const char *when = bm_condition(s->name, o->key);

    fprintf(out, ".TP\n");
    snprintf(text, sizeof text, "%s = %s", o->key,
             o->fallback != NULL ? o->fallback : "");
    request(out, ".B", text);
    bm_option_values(o, text, sizeof text);
    put(out, o->help, strlen(o->help));
    fprintf(out, " (%s", o->fallback == NULL ? "required; " : "");
    put(out, text, strlen(text));
    fputs(")\n", out);
    for (size_t i = 0; bm_choice_at(o, i, word); i++) {
        const char *help = bm_choice_help(s->name, o->key, word);

        if (help == NULL)
            continue;
        fputs(".br\n", out);
        put(out, word, strlen(word));
        fputs(": ", out);
        line(out, help);
    }
    if (when != NULL && when[0] != '\0') {
        fputs(".br\nCounts with ", out);
        put(out, when, strlen(when));
        fputs(".\n", out);
    }
}

static void page_of_settings(FILE *out)
{
    bm_setting_group g;

    head(out, "bmuf", 5, "configuration file and settings of bmuf");
    fprintf(out, ".SH DESCRIPTION\n");
    body(out,
         "bmuf train CONFIG reads a text file with sections and settings:\n"
         "  [data]\n"
         "  train = data/train      # a comment\n"
         "  [model]\n"
         "  net = stack:3 blstm:320*4\n"
         "      linear\n"
         "A comment begins with # or ; at the start of a line or after a "
         "blank. A value in double quotes may contain them. An indented line "
         "continues the value above it. bmuf train, pack, eval and explain "
         "take --set section.key=value, which wins over the file.\n");
    for (size_t i = 0; bm_setting_group_at(i, &g); i++) {
        char title[80];
        size_t n = 0;

        for (n = 0; g.verb[n] != '\0'; n++)
            title[n] = (char)toupper((unsigned char)g.verb[n]);
        title[n] = '\0';
        request(out, ".SH", title);
        sentence(out, g.help);
        for (const bm_section *s = g.sections; s->name != NULL; s++) {
            char about[400];

            fprintf(out, ".SS [%s]\n", s->name);
            bm_plain_text(bm_section_about(s->name), about, sizeof about);
            line(out, about);
            for (const bm_option *o = s->options; o->key != NULL; o++)
                setting(out, s, o);
        }
    }
    fprintf(out, ".SH SEE ALSO\n.BR bmuf (1)\n");
}

/* ---- the verb ------------------------------------------------------------ */

/* A page; `name` NULL: bmuf.1. */
static bm_status print_page(FILE *out, const char *name)
{
    const bm_verb *verb = NULL;

    if (name == NULL) {
        main_page(out);
    } else if (strcmp(name, settings_page) == 0) {
        page_of_settings(out);
    } else {
        BM_TRY(bm_verb_find(name, &verb));
        verb_page(out, verb);
    }
    return BM_OK;
}

static bm_status write_page(const char *path, const char *name)
{
    bm_file_replacement r;
    bm_status status = BM_OK;

    BM_TRY(bm_file_replace_begin(&r, path));
    BM_TRY_DONE(bm_file_replace_stream(&r));
    BM_TRY_DONE(print_page(r.stream, name));
    status = bm_file_replace_commit(&r, true);
done:
    bm_file_replace_abort(&r);
    return status;
}

/* All pages, in DIR/man1 and DIR/man5. */
static bm_status write_all(const char *directory)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/man5", directory);
    BM_TRY(bm_file_make_directory(path));
    snprintf(path, sizeof path, "%s/man5/bmuf.5", directory);
    BM_TRY(write_page(path, settings_page));
    snprintf(path, sizeof path, "%s/man1", directory);
    BM_TRY(bm_file_make_directory(path));
    snprintf(path, sizeof path, "%s/man1/bmuf.1", directory);
    BM_TRY(write_page(path, NULL));
    for (const bm_verb *const *v = bm_verb_list(); *v != NULL; v++) {
        snprintf(path, sizeof path, "%s/man1/bmuf-%s.1", directory, (*v)->name);
        BM_TRY(write_page(path, (*v)->name));
    }
    return BM_OK;
}

static bm_status man(const bm_arguments *a)
{
    const char *out = bm_argument(a, "out");

    if (out != NULL && (a->n_nouns > 0 || strlen(out) > 4000))
        return BM_FAIL(BM_ERR_ARG, "man: --out DIR writes all pages; remove %s",
                       a->n_nouns > 0 ? a->nouns[0] : "some of its length");
    return out != NULL ? write_all(out) : print_page(stdout, a->nouns[0]);
}

static const bm_flag flags[] = {
    {"out", "DIR", "write all pages to DIR/man1 and DIR/man5", 'o', false},
    {0},
};

const bm_verb bm_verb_man = {
    .name = "man",
    .nouns = "[VERB|settings]",
    .help = "print a manual page, in roff",
    .text = "  bmuf man | man -l -\n"
            "  bmuf man train | man -l -\n"
            "  bmuf man settings | man -l -\n"
            "  bmuf man --out ~/.local/share/man\n\n"
            "cmake --install installs the pages.\n",
    .flags = flags,
    .least = 0,
    .most = 1,
    .run = man,
};
