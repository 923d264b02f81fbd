/*
 * arguments.h - options and nouns of a verb, from a table, as getopt_long reads
 * them: --out RUN, --out=RUN, -n 4, and -- ends the options. In a long name _
 * may stand for -.
 */
#ifndef BM_CLI_ARGUMENTS_H
#define BM_CLI_ARGUMENTS_H

#include "core/config.h"

#include <stdbool.h>

struct bm_arguments;

/* One option of a verb. Lists end with an all-zero row. */
typedef struct bm_flag {
    const char *name;  /* "out" */
    const char *value; /* "RUN"; NULL: takes none */
    const char *help;
    char letter; /* 'n'; 0: none */
    bool many;   /* may be given more than once */
} bm_flag;

typedef struct bm_verb {
    const char *name;
    const char *nouns; /* "MODEL DIR" */
    const char *help;  /* one line */
    const char *text;  /* more of it, with examples; for --help */
    const bm_flag *flags;
    int least, most; /* nouns */
    bm_status (*run)(const struct bm_arguments *a);
} bm_verb;

enum { BM_MOST_NOUNS = 8, BM_MOST_GIVEN = 256 };

typedef struct bm_arguments {
    const bm_verb *verb;
    int n_nouns;
    const char *nouns[BM_MOST_NOUNS];
    int n_given;
    struct {
        const bm_flag *flag;
        const char *value; /* "" if it takes none */
    } given[BM_MOST_GIVEN];
    int argc;
    char **argv; /* all of it, for starting again under mpirun */
} bm_arguments;

/* Reads what follows the verb. */
BM_CHECKED bm_status bm_arguments_read(bm_arguments *a, const bm_verb *verb,
                                       int argc, char **argv);

/* What was given last, "" for an option without value; NULL: not given. */
const char *bm_argument(const bm_arguments *a, const char *name);

/* A whole number in [least, most], or `fallback` if it was not given. */
BM_CHECKED bm_status bm_argument_number(const bm_arguments *a, const char *name,
                                        long fallback, long least, long most,
                                        long *out);

/* One of some words, or `fallback` if it was not given. */
BM_CHECKED bm_status bm_argument_word(const bm_arguments *a, const char *name,
                                      const char *words, const char *fallback,
                                      const char **out);

/* All --set of the command line, into a configuration. */
BM_CHECKED bm_status bm_arguments_set(const bm_arguments *a, bm_config *config);

/* Help for a verb: short for -h, all of it for --help. */
void bm_arguments_help(const bm_verb *verb, bool all, FILE *out);

#endif
