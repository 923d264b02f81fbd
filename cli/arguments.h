/*
 * arguments.h - parses the options and operands ("nouns") of a verb by a table,
 * with the syntax of getopt_long: --out RUN, --out=RUN, -n 4; -- ends the
 * options. In a long name _ is accepted for -.
 */
#ifndef BM_CLI_ARGUMENTS_H
#define BM_CLI_ARGUMENTS_H

#include "core/config/config.h"

#include <stdbool.h>

struct bm_arguments;

/* One option of a verb. Lists end with an all-zero row. */
typedef struct bm_flag {
    const char *name;  /* "out" */
    const char *value; /* name of its value in --help, "RUN"; its words,
                          "cpu|cuda|auto"; NULL: no value */
    const char *help;  /* one line */
    char letter;       /* 'n' for -n; 0: none */
    bool many;         /* may be repeated */
} bm_flag;

typedef struct bm_verb {
    const char *name;
    const char *nouns; /* "MODEL DIR" */
    const char *help;  /* one line */
    const char *text;  /* examples, in lines that begin with two blanks, and
                          details for --help */
    const bm_flag *flags;
    int least, most; /* number of nouns */
    bm_status (*run)(const struct bm_arguments *a);
} bm_verb;

/* out [room] <- what to do in place of an option that the verb does not have;
 * false: that is not known. */
typedef bool bm_option_hint(const bm_verb *verb, const char *option, char *out,
                            size_t room);

/* Options of every verb; ends with an all-zero row. */
extern const bm_flag bm_common_flags[];

/* The exit codes of the program; ends with an all-zero row. */
typedef struct bm_exit_code {
    const char *code; /* "64"; "128+n" */
    const char *meaning;
} bm_exit_code;
extern const bm_exit_code bm_exit_codes[];

/* Most arguments of verbs that hold something for each of them in memory, and of
 * all verbs; most options. */
enum { BM_MOST_NOUNS = 64, BM_MOST_INPUTS = 1 << 16, BM_MOST_GIVEN = 256 };

typedef struct bm_arguments {
    const bm_verb *verb;
    bm_option_hint *hint;
    int n_nouns;
    const char *nouns[BM_MOST_INPUTS];
    int n_given;
    struct {
        const bm_flag *flag;
        const char *value; /* "" for an option without value */
    } given[BM_MOST_GIVEN];
    int argc;
    char **argv; /* the whole command line, to run it again under mpirun */
} bm_arguments;

/* Parses the arguments after the verb; *a borrows argv. Fails with BM_ERR_ARG
 * on an unknown or repeated option, a missing or superfluous value, or a wrong
 * number of nouns. */
BM_CHECKED bm_status bm_arguments_read(bm_arguments *a, const bm_verb *verb,
                                       int argc, char **argv,
                                       bm_option_hint *hint);

/* The last value of an option, "" for an option without value; NULL: not
 * given. */
const char *bm_argument(const bm_arguments *a, const char *name);

/* An integer in [least, most], or `fallback` if the option is not given. Fails
 * with BM_ERR_ARG if it is not an integer or outside. */
BM_CHECKED bm_status bm_argument_number(const bm_arguments *a, const char *name,
                                        long fallback, long least, long most,
                                        long *out);

/* A number in [least, most], likewise. */
BM_CHECKED bm_status bm_argument_real(const bm_arguments *a, const char *name,
                                      double fallback, double least,
                                      double most, double *out);

/* One of `words`, or `fallback` if the option is not given. Fails with
 * BM_ERR_ARG on another word. */
BM_CHECKED bm_status bm_argument_word(const bm_arguments *a, const char *name,
                                      const char *words, const char *fallback,
                                      const char **out);

/* Applies every --set to a configuration. Fails with BM_ERR_ARG if one is not
 * section.key=value. */
BM_CHECKED bm_status bm_arguments_set(const bm_arguments *a, bm_config *config);

/* Prints the help of a verb; `all`: with the exit codes. */
void bm_arguments_help(const bm_verb *verb, bool all, FILE *out);

#endif
