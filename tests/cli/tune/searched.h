/* searched.h - a small search with bmuf tune, and what it leaves. */
#ifndef BM_TESTS_CLI_TUNE_SEARCHED_H
#define BM_TESTS_CLI_TUNE_SEARCHED_H

#include "tests/support/program.h"

/* A set-up of a group: digits, and tune.ini for them. Undone by digits_tear_down. */
int search_set_up(void **state);

/* Runs five trials of tune.ini into `out`. */
#define TUNE(p, out, ...)                                                      \
    RUN_PROGRAM(p, "tune", "tune.ini", "--out", out, "--trials", "5",          \
                __VA_ARGS__)

/* A file of a search, as text; free(). */
char *read_whole(const char *directory, const char *name);

enum { FIELDS = 20 }; /* of a row of trials.tsv, at most */

/* field <- the fields of a line of it; returns how many. */
int split_row(const char *line, char field[FIELDS][64]);

/* The fields of the last row of trials.tsv with this name. */
void row_of(const char *directory, const char *trial, char field[FIELDS][64]);

/* A field of the row of trials.tsv for a trial and a rung, by the name of its
 * column; "": there is no such column. */
void field_of(const char *directory, const char *trial, const char *rung,
              const char *column, char out[64]);

#endif
