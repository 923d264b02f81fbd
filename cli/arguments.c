#include "cli/arguments.h"

#include "core/text/words.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const bm_flag bm_common_flags[] = {
    {"color", "auto|always|never", "colour of messages; default: auto", 0,
     false},
    {"quiet", NULL, "print only warnings and errors besides the results", 'q',
     false},
    {"verbose", NULL, "print details, such as the mpirun command", 'v', false},
    {0},
};

const bm_exit_code bm_exit_codes[] = {
    {"0", "success"},
    {"64", "usage"},
    {"65", "invalid data"},
    {"66", "missing input"},
    {"69", "rank or host lost"},
    {"70", "bug"},
    {"71", "out of memory"},
    {"73", "cannot create"},
    {"74", "I/O"},
    {"75", "stopped on request: run again to resume"},
    {"76", "diverged"},
    {"78", "configuration"},
    {"128+n", "signal n, to the program or to a rank that was lost"},
    {0},
};

/* Compares given [n] with name; _ matches -. */
static bool same_name(const char *given, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if ((given[i] == '_' ? '-' : given[i]) != name[i] || name[i] == '\0')
            return false;
    return name[n] == '\0';
}

static const bm_flag *find(const bm_verb *verb, const char *given, size_t n)
{
    for (const bm_flag *f = verb->flags; f->name != NULL; f++)
        if (same_name(given, n, f->name))
            return f;
    for (const bm_flag *f = bm_common_flags; f->name != NULL; f++)
        if (same_name(given, n, f->name))
            return f;
    return NULL;
}

static const bm_flag *find_letter(const bm_verb *verb, char letter)
{
    for (const bm_flag *f = verb->flags; f->name != NULL; f++)
        if (f->letter == letter)
            return f;
    for (const bm_flag *f = bm_common_flags; f->name != NULL; f++)
        if (f->letter == letter)
            return f;
    return NULL;
}

/* out [room] <- the option that is nearest to `name`, or that `name` begins
 * with: "out" for "output". */
static bool nearest(const bm_verb *verb, const char *name, char *out,
                    size_t room)
{
    const bm_flag *lists[] = {verb->flags, bm_common_flags};
    char all[1024] = "";

    for (size_t i = 0; i < 2; i++)
        for (const bm_flag *f = lists[i]; f->name != NULL; f++)
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s ",
                     f->name);
    if (bm_nearest_word(name, all, out, room))
        return true;
    for (const bm_flag *f = verb->flags; f->name != NULL; f++)
        if (strlen(f->name) >= 3 &&
            strncmp(name, f->name, strlen(f->name)) == 0) {
            snprintf(out, room, "%s", f->name);
            return true;
        }
    return false;
}

/* `word` is an option that the verb does not have. */
static bm_status unknown(const bm_arguments *a, const char *word)
{
    const bm_verb *verb = a->verb;
    char option[64], text[200] = "", near[64];

    snprintf(option, sizeof option, "%.*s", (int)strcspn(word, "="), word);
    /* a single letter is close to every word */
    if (!a->hint(verb, option, text, sizeof text) && option[1] != '-' &&
        find(verb, option + 1, strlen(option + 1)) != NULL)
        snprintf(text, sizeof text, "did you mean -%s", option);
    else if (text[0] == '\0' && option[1] == '-' &&
             nearest(verb, option + 2, near, sizeof near))
        snprintf(text, sizeof text, "did you mean --%s", near);
    return BM_FAIL(BM_ERR_ARG, "%s: unknown option %s%s%s; see bmuf %s --help",
                   verb->name, word, text[0] != '\0' ? "; " : "", text,
                   verb->name);
}

static bm_status give(bm_arguments *a, const bm_flag *f, const char *value)
{
    if (a->n_given == BM_MOST_GIVEN)
        return BM_FAIL(BM_ERR_ARG, "%s: more than %d options", a->verb->name,
                       BM_MOST_GIVEN);
    if (!f->many && bm_argument(a, f->name) != NULL)
        return BM_FAIL(BM_ERR_ARG, "%s: --%s is given twice", a->verb->name,
                       f->name);
    a->given[a->n_given].flag = f;
    a->given[a->n_given++].value = value;
    return BM_OK;
}

/* The option at argv[*i]; its value may be argv[*i + 1]. */
static bm_status read_option(bm_arguments *a, int argc, char **argv, int *i)
{
    const char *word = argv[*i], *value = NULL;
    char text[200];
    bool is_long = word[1] == '-';
    const char *name = word + (is_long ? 2 : 1);
    size_t n = is_long ? strcspn(name, "=") : 1;
    const bm_flag *f =
        is_long ? find(a->verb, name, n) : find_letter(a->verb, name[0]);

    if (f == NULL || (!is_long && a->hint(a->verb, word, text, sizeof text)) ||
        (!is_long && find(a->verb, name, strcspn(name, "=")) != NULL))
        return unknown(a, word);
    if (name[n] != '\0')
        value = name + n + (name[n] == '=');
    if (f->value == NULL && value != NULL && !is_long)
        return BM_FAIL(BM_ERR_ARG,
                       "%s: %s: short options cannot be joined; write them one "
                       "by one, as -%c -%c",
                       a->verb->name, word, name[0], name[1]);
    if (f->value == NULL && value != NULL)
        return BM_FAIL(BM_ERR_ARG, "%s: --%s takes no value", a->verb->name,
                       f->name);
    if (f->value != NULL && value == NULL) {
        if (*i + 1 >= argc)
            return BM_FAIL(BM_ERR_ARG, "%s: --%s needs a value: --%s %s",
                           a->verb->name, f->name, f->name, f->value);
        value = argv[++*i];
    }
    return give(a, f, value != NULL ? value : "");
}

bm_status bm_arguments_read(bm_arguments *a, const bm_verb *verb, int argc,
                            char **argv, bm_option_hint *hint)
{
    bool options = true;

    memset(a, 0, sizeof *a);
    a->verb = verb;
    a->hint = hint;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];

        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && word[0] == '-' && word[1] != '\0') {
            BM_TRY(read_option(a, argc, argv, &i));
        } else if (a->n_nouns == BM_MOST_NOUNS && verb->most == a->n_nouns) {
            return BM_FAIL(BM_ERR_ARG, "%s takes at most %d of %s", verb->name,
                           BM_MOST_NOUNS, verb->nouns);
        } else if (a->n_nouns == verb->most || a->n_nouns == BM_MOST_INPUTS) {
            return BM_FAIL(BM_ERR_ARG,
                           "%s: unexpected argument '%s'; usage: bmuf %s%s%s",
                           verb->name, word, verb->name,
                           verb->nouns[0] != '\0' ? " " : "", verb->nouns);
        } else if (word[0] == '\0') {
            return BM_FAIL(BM_ERR_ARG,
                           "%s: argument %d is empty; is a variable of the "
                           "shell not set? usage: bmuf %s %s",
                           verb->name, a->n_nouns + 1, verb->name, verb->nouns);
        } else {
            a->nouns[a->n_nouns++] = word;
        }
    }
    if (a->n_nouns < verb->least)
        return BM_FAIL(BM_ERR_ARG,
                       "%s needs %s; see bmuf %s --help for examples",
                       verb->name, verb->nouns, verb->name);
    return BM_OK;
}

const char *bm_argument(const bm_arguments *a, const char *name)
{
    for (int i = a->n_given; i-- > 0;)
        if (strcmp(a->given[i].flag->name, name) == 0)
            return a->given[i].value;
    return NULL;
}

bm_status bm_argument_number(const bm_arguments *a, const char *name,
                             long fallback, long least, long most, long *out)
{
    const char *text = bm_argument(a, name);
    char *end = NULL;
    long x = fallback;

    if (text != NULL) {
        errno = 0;
        x = strtol(text, &end, 10);
        if (errno != 0 || end == text || *end != '\0' || x < least || x > most)
            return BM_FAIL(BM_ERR_ARG,
                           "%s: --%s %s is not an integer in [%ld, %ld]",
                           a->verb->name, name, text, least, most);
    }
    *out = x;
    return BM_OK;
}

bm_status bm_argument_real(const bm_arguments *a, const char *name,
                           double fallback, double least, double most,
                           double *out)
{
    const char *text = bm_argument(a, name);
    char *end = NULL;
    double x = fallback;

    if (text != NULL) {
        x = strtod(text, &end);
        if (end == text || *end != '\0' || !(x >= least && x <= most))
            return BM_FAIL(BM_ERR_ARG,
                           "%s: --%s %s is not a number in [%g, %g]",
                           a->verb->name, name, text, least, most);
    }
    *out = x;
    return BM_OK;
}

bm_status bm_argument_word(const bm_arguments *a, const char *name,
                           const char *words, const char *fallback,
                           const char **out)
{
    const char *word = bm_argument(a, name);

    if (word != NULL && !bm_is_word_of(word, words))
        return BM_FAIL(BM_ERR_ARG, "%s: --%s %s is not one of: %s",
                       a->verb->name, name, word, words);
    *out = word != NULL ? word : fallback;
    return BM_OK;
}

bm_status bm_arguments_set(const bm_arguments *a, bm_config *config)
{
    for (int i = 0; i < a->n_given; i++)
        if (strcmp(a->given[i].flag->name, "set") == 0)
            BM_TRY(bm_config_set(config, a->given[i].value));
    return BM_OK;
}

enum { LEFT = 27, WIDE = 80 }; /* columns of options; of all */

/* Right of the options, in lines of up to WIDE characters. */
static void print_wrapped(const char *text, FILE *out)
{
    size_t column = LEFT + 2;

    for (size_t n = 0; *text != '\0'; text += n + strspn(text + n, " ")) {
        n = strcspn(text, " ");
        if (column > LEFT + 2 && column + 1 + n > WIDE) {
            fprintf(out, "\n  %*s", LEFT, "");
            column = LEFT + 2;
        }
        fprintf(out, " %.*s", (int)n, text);
        column += 1 + n;
    }
    fputc('\n', out);
}

static void print_flags(const bm_flag *flags, FILE *out)
{
    for (const bm_flag *f = flags; f->name != NULL; f++) {
        char left[80], letter[8] = "    ";

        if (f->letter != 0)
            snprintf(letter, sizeof letter, "-%c, ", f->letter);
        snprintf(left, sizeof left, "%s--%s %s", letter, f->name,
                 f->value != NULL ? f->value : "");
        fprintf(out, "  %-*s", LEFT, left);
        if (strlen(left) > LEFT)
            fprintf(out, "\n  %*s", LEFT, "");
        print_wrapped(f->help, out);
    }
}

static void print_exit_codes(FILE *out)
{
    size_t column = strlen("Exit codes:");

    fprintf(out, "\nExit codes:");
    for (const bm_exit_code *e = bm_exit_codes; e->code != NULL; e++) {
        char item[80];
        size_t n = (size_t)snprintf(item, sizeof item, "%s %s%s", e->code,
                                    e->meaning, e[1].code != NULL ? "," : ".");

        if (column + 1 + n > 78) {
            fputs("\n ", out);
            column = 1;
        }
        fprintf(out, " %s", item);
        column += 1 + n;
    }
    fputc('\n', out);
}

void bm_arguments_help(const bm_verb *verb, bool all, FILE *out)
{
    fprintf(out, "usage: bmuf %s [OPTION]...%s%s\n\n%c%s.\n\n%s\n", verb->name,
            verb->nouns[0] != '\0' ? " " : "", verb->nouns,
            toupper((unsigned char)verb->help[0]), verb->help + 1, verb->text);
    print_flags(verb->flags, out);
    fprintf(out, "\nOptions of every verb:\n");
    print_flags(bm_common_flags, out);
    if (all)
        print_exit_codes(out);
}
